public import Cryptography

/// The SHA-256 of a certificate's SubjectPublicKeyInfo, which clients pin (RFC 7469 section 2.4).
///
/// It identifies the key, not the certificate, and stays the same at a renewal.
public struct SPKIPin: Hashable, Sendable {
    /// The digest of the SubjectPublicKeyInfo.
    public let digest: SHA256Digest

    /// Hashes a SubjectPublicKeyInfo in DER.
    public init(subjectPublicKeyInfo: some ByteSource) {
        digest = SHA256.hash(subjectPublicKeyInfo)
    }

    /// Reads ``base64`` or ``description``. Returns `nil` for other text.
    public init?(_ text: some StringProtocol) {
        var encoded = Array(text.utf8)
        let prefix = Array(Self.prefix.utf8)
        if encoded.starts(with: prefix) { encoded.removeFirst(prefix.count) }
        guard let bytes = try? Base64.decode(encoded), let digest = SHA256Digest(bytes) else { return nil }
        self.digest = digest
    }

    /// The pin in base64, as in `GET /v1/service`.
    public var base64: String { Base64.encodeToString(digest) }

    private static let prefix = "sha256//"
}

extension SPKIPin: CustomStringConvertible {
    /// The form of curl's `--pinnedpubkey`: `sha256//` and base64.
    public var description: String { Self.prefix + base64 }
}
