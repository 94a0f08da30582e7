internal import Cryptography
public import Foundation

/// A link that opens a share in any browser: `https://host/s/ID#PASSPHRASE`.
///
/// ```swift
/// let shared = try await vault.share(text: "Buy salt.", base: url)
/// show(String(try await SharedLink.open(shared.url, over: transport)) ?? "")
/// ```
public struct SharedLink: Sendable {
    /// The whole link. Its fragment contains the passphrase, which no request sends.
    public let url: URL
    /// The token that changes and deletes the share. ``Vault/endShare(_:)`` does not need it.
    public let manageToken: Token
    /// The id of the share, for ``Vault/endShare(_:)``.
    public let id: String

    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    /// The characters of a passphrase, with 131 random bits.
    private static let passphraseCount = 22
    /// A random passphrase cannot be guessed, so few iterations are sufficient.
    private static let iterations = 10_000

    /// Generates a passphrase in which every letter and digit has the same probability.
    static func randomPassphrase() -> SecureBytes {
        SecureBytes(count: passphraseCount) { passphrase in
            for index in passphrase.indices {
                var byte = SecureRandom.bytes(1)[0]
                while byte >= 248 { byte = SecureRandom.bytes(1)[0] }
                passphrase[index] = alphabet[Int(byte) % alphabet.count]
            }
        }
    }

    static func content(
        _ payload: some ByteSource, _ passphrase: SecureBytes, expiresAt: Date?, maxViews: Int?
    ) throws -> ShareContent {
        let salt = SecureRandom.bytes(16)
        let key = try PBKDF2.deriveKey(from: passphrase, salt: salt, unsafeUncheckedIterations: iterations)
        return ShareContent(
            format: "aes-256-gcm", salt: salt, iterations: iterations, sealed: try AESGCM.seal(payload, using: key),
            expiresAt: expiresAt, maxViews: maxViews)
    }
}
