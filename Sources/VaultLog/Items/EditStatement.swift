public import Cryptography

/// The SHA-256 of the statement about an edit. Edits with one hash are one edit, under whichever key they are sealed.
public struct EditHash: Hashable, Sendable {
    /// The 32 bytes.
    public let bytes: [UInt8]

    /// Creates a hash from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == SHA256Digest.byteCount else { return nil }
        self.bytes = [UInt8](bytes)
    }

    init(of text: [UInt8]) { bytes = SHA256.hash(text).bytes }

    /// The predecessor of a first edit: zeros.
    public static let none = EditHash(unchecked: [UInt8](repeating: 0, count: SHA256Digest.byteCount))

    private init(unchecked bytes: [UInt8]) { self.bytes = bytes }
}

/// The SHA-256 of the statement about an edit and of its signature, by which a list in plain bytes names the edit.
///
/// Without the signature, which is sealed, the server could compare it with guesses of the content.
public struct EditMark: Hashable, Sendable {
    /// The 32 bytes.
    public let bytes: [UInt8]

    /// Creates a mark from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == SHA256Digest.byteCount else { return nil }
        self.bytes = [UInt8](bytes)
    }

    init(of text: [UInt8]) { bytes = SHA256.hash(text).bytes }
}

/// The number of an edit of an item, 1 to 2^63 − 2, so that a later number always exists.
public struct EditNumber: Hashable, Comparable, Sendable {
    /// The highest number.
    public static let limit = UInt64(Int64.max) - 1
    /// The first edit.
    public static let first = EditNumber(unchecked: 1)

    /// The number.
    public let value: UInt64

    /// Creates a number.
    /// - Returns: nil for 0 and above ``limit``.
    public init?(_ value: UInt64) {
        guard (1...Self.limit).contains(value) else { return nil }
        self.value = value
    }

    private init(unchecked value: UInt64) { self.value = value }

    public static func < (left: EditNumber, right: EditNumber) -> Bool { left.value < right.value }
}

/// The content of an edit, and its place in the vault and in the history of its item.
public struct EditStatement: Sendable {
    /// The item.
    public let item: VaultItemID
    /// The collection of the item, at most 65,535 bytes of UTF-8.
    public let collection: String
    /// The number of the edit.
    public let number: EditNumber
    /// The hash of the previous edit; zeros for the first one.
    public let previous: EditHash
    /// SHA-256 of the title; nil for an item without one.
    let titleDigest: SHA256Digest?
    /// SHA-256 of the content.
    let bodyDigest: SHA256Digest

    /// Describes an edit.
    /// - Returns: nil for a collection whose name is too long.
    public init?(
        item: VaultItemID, collection: String, number: EditNumber, previous: EditHash, title: SecureBytes?,
        body: SecureBytes
    ) {
        guard collection.utf8.count <= Int(UInt16.max) else { return nil }
        self.item = item
        self.collection = collection
        self.number = number
        self.previous = previous
        titleDigest = title.map { SHA256.hash($0) }
        bodyDigest = SHA256.hash(body)
    }

    /// The statement:
    ///
    ///     vault (16) ‖ item (16) ‖ length (2) ‖ collection ‖ edit number (8) ‖ previous (32) ‖ author (16)
    ///     ‖ head (40) ‖ 00 ‖ zeros (32), or 01 ‖ SHA-256 of the title ‖ SHA-256 of the body (32)
    func bytes(_ vault: VaultID, _ author: MemberID, _ head: Head) -> [UInt8] {
        let name = Array(collection.utf8)
        let title = [titleDigest == nil ? 0 : 1] + (titleDigest ?? .zero).bytes
        return vault.bytes + item.bytes + UInt16(name.count).bigEndianBytes + name + number.value.bigEndianBytes
            + previous.bytes + author.bytes + head.bytes + title + bodyDigest.bytes
    }

    /// The hash by which the next edit names this one. It is sealed.
    public func hash(_ vault: VaultID, _ author: MemberID, _ head: Head) -> EditHash {
        EditHash(of: VaultLabel.editHash.text(bytes(vault, author, head)))
    }

    /// The mark by which a list names this edit.
    public func mark(_ vault: VaultID, _ body: SignedBody) -> EditMark {
        EditMark(of: VaultLabel.editMark.text(bytes(vault, body.author, body.head), body.signature.bytes))
    }

    func text(_ vault: VaultID, _ author: MemberID, _ head: Head) -> [UInt8] {
        VaultLabel.edit.text(bytes(vault, author, head))
    }
}

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
