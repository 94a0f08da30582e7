internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// Verifies assertions for log-ins.
struct PasskeyVerifier: Sendable {
    /// Nil if passkeys are off.
    let relyingParty: RelyingParty?
    let challenges: PasskeyChallenges
    /// The public key of no passkey, with which assertions of unknown passkeys are verified. Made at the first use; the
    /// private half is discarded.
    private static let decoy = (try? P256.PrivateKey.generate()).map { [UInt8]($0.publicKey.bytes.dropFirst()) } ?? []

    /// The requirements of an assertion.
    enum Use: Sendable {
        /// It opens a session without the password key: the user is verified, and the passkey names the account.
        case alone
        /// It accompanies the right password key.
        case secondFactor
        /// It replaces the password key in a session: the user is verified.
        case inSession
    }

    init(_ configuration: ServiceConfiguration) {
        relyingParty = configuration.passkeys
        challenges = PasskeyChallenges(configuration.masterKey)
    }

    /// Verifies an assertion. An unknown passkey takes the same steps as a known one.
    /// - Parameters:
    ///   - passkey: The stored state, or nil for an unknown passkey.
    /// - Throws: ``WrongPasskey``, or ``PasskeyProblem/off``.
    func verify(
        _ response: AuthenticationResponse, of accountID: AccountID, _ passkey: UsablePasskey?,
        for purpose: PasskeyChallenge.Purpose, _ use: Use, now: Timestamp
    ) throws -> (challenge: PasskeyChallenge, verified: Assertion.Verified) {
        guard let relyingParty else { throw PasskeyProblem.off }
        do throws(WebAuthnFailure) {
            let assertion = try response.assertion()
            let bytes = assertion.clientData.challenge
            let challenge = challenges.challenge(bytes, for: purpose, now: now)
            let key = try CredentialKey(
                algorithm: passkey.flatMap { CredentialKey.Algorithm(rawValue: Int($0.algorithm)) } ?? .es256,
                bytes: passkey?.publicKey ?? Self.decoy)
            let verified = try assertion.verify(
                for: relyingParty, challenge: bytes, requiresUserVerification: use != .secondFactor,
                Assertion.Expectation(
                    key: key, signCount: UInt32(clamping: passkey?.signCount ?? 0),
                    isBackupEligible: passkey?.isBackupEligible ?? assertion.isBackupEligible,
                    userHandle: accountID.uuid.bytes, requiresUserHandle: use == .alone))
            guard let challenge, passkey != nil else { throw .wrongChallenge }
            return (challenge, verified)
        } catch {
            throw WrongPasskey(
                accountID: passkey == nil ? nil : accountID, failure: error, isInSession: use == .inSession)
        }
    }
}
