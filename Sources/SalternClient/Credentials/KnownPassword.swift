internal import Cryptography

/// The part of a derived password that an open vault keeps: the key that opens keyrings, and a digest that recognises
/// the password. The stored part cannot log in, because the password key cannot be computed from it.
struct KnownPassword: Sendable {
    /// The second block of the derived key.
    let unlockKey: SecureBytes
    private let digest: SecureBytes
    /// The first block, in the process that derived it. It is not stored.
    let passwordKey: SecretBytes?

    static let byteCount = 64

    init(_ password: StretchedPassword) {
        unlockKey = password.unlockKey
        digest = Self.digest(password)
        passwordKey = password.passwordKey
    }

    /// Decodes ``encoded``.
    /// - Returns: nil for another number of bytes.
    init?(encoded: SecureBytes) {
        var reader = SecretReader(encoded)
        guard let digest = reader.secret(32), let unlockKey = reader.secret(32), reader.isAtEnd else { return nil }
        self.digest = digest
        self.unlockKey = unlockKey
        passwordKey = nil
    }

    /// Digest and unlock key, 64 bytes.
    var encoded: SecureBytes {
        var writer = SecretWriter()
        writer.write(digest)
        writer.write(unlockKey)
        return writer.bytes
    }

    /// Returns true for the same password.
    func matches(_ password: StretchedPassword) -> Bool { Self.digest(password) == digest }

    private static func digest(_ password: StretchedPassword) -> SecureBytes {
        HKDF.deriveKey(from: password.passwordKey.bytes, info: SealingLabels.passwordDigest.utf8)
    }
}
