public import Cryptography

/// The content of a sealed body in a vault:
///
///     author (16) ‖ number of the head (8) ‖ hash of the head (32) ‖ signature (64) ‖ content
///
/// The author, the head and the signature stay when another member seals the edit again under a new generation.
public struct SignedBody: Sendable {
    /// The author.
    public let author: MemberID
    /// The author's head when it made the edit.
    public let head: Head
    /// The signature of the statement about the edit.
    public let signature: VaultSignature
    /// The content.
    public let content: SecureBytes

    /// The number of bytes before the content.
    public static let prefixByteCount = MemberID.byteCount + Head.byteCount + VaultSignature.byteCount

    /// Signs an edit.
    /// - Parameters:
    ///   - content: The content that `statement` describes.
    ///   - head: The newest head of the author's log.
    public init(
        _ content: SecureBytes, _ statement: EditStatement, by signer: MemberSigner, _ head: Head
    ) throws(P256.Failure) {
        author = signer.member
        self.head = head
        self.content = content
        signature = try VaultSignature.sign(statement.text(signer.vault, signer.member, head), with: signer.key)
    }

    /// Reads an opened body.
    /// - Returns: nil for bytes that are no signed body.
    public init?(_ bytes: SecureBytes) {
        guard bytes.count >= Self.prefixByteCount else { return nil }
        var reader = ByteReader(bytes.open(0..<Self.prefixByteCount)[...])
        guard let author = reader.id(MemberID.self), let head = reader.head(), let signature = reader.signature() else {
            return nil
        }
        self.author = author
        self.head = head
        self.signature = signature
        content = bytes.slice(Self.prefixByteCount..<bytes.count)
    }

    /// The bytes to seal as the body.
    public var bytes: SecureBytes {
        SecureBytes(concatenating: [author.bytes, head.bytes, signature.bytes, content])
    }
}
