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
        guard let text = text.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else { return nil }
        self.init(text)
    }

    /// Whether there is none.
    public var isEmpty: Bool { bytes.isEmpty }
}

/// What a password becomes before anything is sent: PBKDF2 makes its output in blocks of 32 bytes that say nothing about
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
