public import Cryptography
internal import Foundation

/// A password as input of PBKDF2: NFC, then UTF-8, the same bytes on every platform. It is zeroed on release and never
/// printed.
///
/// ```swift
/// let vault = try await Vault.logIn(settings, userid: "ada@example.org", password: Password(typed))
/// show(try await vault.unsentCount())
/// ```
public struct Password: Sendable {
    let bytes: SecureBytes

    /// Normalises text that a person has typed.
    public init(_ text: String) {
        bytes = SecureBytes(copying: text.precomposedStringWithCanonicalMapping.utf8)
    }

    /// Normalises text that was read as UTF-8.
    /// - Returns: nil for bytes that are not UTF-8.
    public init?(utf8 text: SecureBytes) {
        guard let text = text.withUnsafeBytes({ String(strictUTF8: $0) }) else { return nil }
        self.init(text)
    }

    /// True for an empty text.
    public var isEmpty: Bool { bytes.isEmpty }
}

/// The keys that PBKDF2 derives from a password. Its output consists of blocks of 32 bytes that reveal nothing about
/// each other.
public struct StretchedPassword: Sendable {
    /// The first block, which is sent to the server.
    public let passwordKey: SecretBytes
    /// The second block, which opens the keyring and stays on the device.
    let unlockKey: SecureBytes

    /// The part that an open vault keeps.
    var known: KnownPassword { KnownPassword(self) }

    init(_ stretched: SecureBytes) {
        (passwordKey, unlockKey) = stretched.withUnsafeBytes { bytes in
            (
                SecretBytes(SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<32]))),
                SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[32...]))
            )
        }
    }
}

/// The part of a derived password that an open vault keeps: the key that opens keyrings, and a digest that recognises
/// the password. The stored part cannot log in, because the password key cannot be computed from it.
struct KnownPassword: Sendable {
    /// The second block of the derived key.
    let unlockKey: SecureBytes
    /// Zeros after a log-in by a passkey, which knows no password key.
    private let digest: SecureBytes
    /// The first block, in the process that derived it. It is not stored.
    let passwordKey: SecretBytes?

    static let byteCount = 64

    init(_ password: StretchedPassword) {
        unlockKey = password.unlockKey
        digest = Self.digest(password)
        passwordKey = password.passwordKey
    }

    /// Creates a password of which a passkey has opened the unlock key.
    init(unlockKey: SecureBytes) {
        self.unlockKey = unlockKey
        digest = Self.noDigest
        passwordKey = nil
    }

    private static var noDigest: SecureBytes { SecureBytes(copying: [UInt8](repeating: 0, count: 32)) }

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

    /// Returns the keys of an open vault, which a device keeps: ``encoded``, then the keyring.
    func encoded(with keyring: Keyring) -> SecureBytes {
        var writer = SecretWriter()
        writer.write(encoded)
        writer.write(keyring.encoded())
        return writer.bytes
    }

    /// Returns true for the same password.
    func matches(_ password: StretchedPassword) -> Bool {
        digest == Self.noDigest ? unlockKey == password.unlockKey : Self.digest(password) == digest
    }

    private static func digest(_ password: StretchedPassword) -> SecureBytes {
        HKDF.deriveKey(from: password.passwordKey.bytes, info: SealingLabels.passwordDigest.utf8)
    }
}
