public import Cryptography
internal import Foundation

/// A password as it is stretched: NFC, then UTF-8, the same bytes on every platform. Zeroed when it goes, never printed.
public struct Password: Sendable {
    let bytes: SecureBytes

    /// Normalises what a person has typed.
    public init(_ text: String) {
        bytes = SecureBytes(copying: text.precomposedStringWithCanonicalMapping.utf8)
    }

    /// Normalises what was read as UTF-8.
    /// - Returns: nil when it is no UTF-8.
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
    /// The first block: for the server.
    public let passwordKey: SecretBytes
    /// The second block: stays here, and opens the keyring.
    let unlockKey: SecureBytes

    /// What an open vault keeps of it.
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
