public import Foundation

/// An authenticator with passkeys: the platform's, a security key, or another program.
///
/// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
public protocol PasskeyAuthenticator: Sendable {
    /// Creates a passkey, as `navigator.credentials.create()` does.
    /// - Parameter options: From the server. ``PasskeyCreationOptions/RelyingParty/id`` is the server's host or a
    ///   domain above it.
    func create(_ options: PasskeyCreationOptions) async throws(PasskeyError) -> PasskeyRegistration

    /// Answers with a passkey, as `navigator.credentials.get()` does.
    /// - Parameters:
    ///   - options: From the server, or from the vault itself to unlock a new passkey.
    ///   - input: The input of the pseudo-random function (`prf.eval.first` of WebAuthn Level 3 §10.1.4); nil when no
    ///     output is needed.
    func get(_ options: PasskeyRequestOptions, prf input: [UInt8]?) async throws(PasskeyError) -> PasskeyAnswer
}

/// The answer of a passkey.
public struct PasskeyAnswer: Sendable {
    /// The part for the server.
    public let assertion: PasskeyAssertion
    /// The output of the pseudo-random function, 32 bytes. It opens the keyring and stays on the device. Nil without
    /// one.
    public let output: SecretBytes?

    /// Creates an answer.
    public init(_ assertion: PasskeyAssertion, output: SecretBytes?) {
        self.assertion = assertion
        self.output = output
    }
}

/// The reason for which an authenticator did not answer, or its answer is of no use.
public enum PasskeyError: Error, Hashable, Sendable {
    /// No authenticator is connected, or the platform has none.
    case noAuthenticator
    /// More than one authenticator is connected.
    case severalAuthenticators
    /// The authenticator has no passkey that may answer.
    case noPasskey
    /// The authenticator already has a passkey of this account.
    case exists
    /// A person has cancelled, or has not touched the authenticator in time.
    case cancelled
    /// The authenticator could not verify its user: it has no PIN, or a PIN was wrong.
    case notVerified
    /// The authenticator has locked its PIN after too many wrong ones.
    case pinLocked
    /// The passkey does not unlock the keyring: the authenticator has no PRF, or the passkey was added without it.
    case doesNotUnlock
    /// The passkey is not in this device's keyring, or the server names another userid than the keyring. The server may
    /// be hostile: log in with the password. The same holds for a new device if the keyring has no userid, because an
    /// earlier kit has sealed it.
    case unconfirmed
    /// The server names a site to which it does not belong. It may be hostile.
    case foreignSite
    /// The authenticator failed.
    case failed
}

extension PasskeyError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .noAuthenticator: "There is no authenticator for passkeys on this device."
        case .severalAuthenticators: "More than one authenticator is connected. Leave one."
        case .noPasskey: "The authenticator has no passkey for this account."
        case .exists: "The authenticator already has a passkey of this account."
        case .cancelled: "The passkey was not confirmed."
        case .notVerified: "The authenticator could not verify its user. Check its PIN."
        case .pinLocked: "The authenticator's PIN is locked after too many wrong attempts."
        case .doesNotUnlock: "The passkey does not unlock the items. Log in with the password."
        case .unconfirmed: "This device cannot confirm the passkey. Log in with the password."
        case .foreignSite: "The server asks for a passkey of another site. It was not used."
        case .failed: "The authenticator has failed."
        }
    }
}
