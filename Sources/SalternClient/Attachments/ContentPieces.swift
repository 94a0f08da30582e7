package import Cryptography

/// The content of an item's body, or of the attachment that it names, in pieces of at most
/// ``Attachment/chunkByteCount`` bytes.
package struct ContentPieces: Sendable {
    /// The manifest; nil when the body itself is the content.
    package let attachment: Attachment?
    package let byteCount: Int64
    private let body: SecureBytes
    private let items: OwnedItems
    private let keepsCopies: Bool

    /// - Parameter keepsCopies: True to keep copies of fetched pieces on this device.
    package init(of body: SecureBytes, in vault: Vault, keepsCopies: Bool = true) {
        self.init(of: body, in: OwnedItems(vault), keepsCopies: keepsCopies)
    }

    package init(of body: SecureBytes, in items: OwnedItems, keepsCopies: Bool = true) {
        // A body that begins like a manifest and is not a valid one is content.
        let attachment = Attachment(body)
        self.attachment = attachment
        self.body = attachment?.inline ?? body
        self.items = items
        self.keepsCopies = keepsCopies
        byteCount = attachment?.byteCount ?? Int64(body.count)
    }

    /// True when the pieces are fetched from the server.
    package var isFetched: Bool { attachment.map { $0.inline == nil } ?? false }

    package var count: Int {
        if let attachment, isFetched { return attachment.pieceCount }
        return max(Int(Attachment.chunkCount(of: Int64(body.count), each: Attachment.chunkByteCount)), 1)
    }

    /// Returns a piece, complete and verified.
    /// - Throws: ``VaultError/unreadable`` when the server does not have this piece.
    package func piece(_ index: Int) async throws(VaultError) -> SecureBytes {
        if let attachment, isFetched {
            do throws(VaultError) {
                return try await items.piece(index, of: attachment, keepsCopy: keepsCopies)
            } catch {
                throw error.ofContent
            }
        }
        if count == 1 { return body }
        let start = index * Attachment.chunkByteCount
        return body.withUnsafeBytes { bytes in
            SecureBytes(
                copying: UnsafeRawBufferPointer(rebasing: bytes[start...].prefix(Attachment.chunkByteCount)))
        }
    }

    /// Returns the whole content, which has to fit in memory.
    package func whole() async throws(VaultError) -> SecureBytes {
        isFetched ? try await items.wholeContent(of: body) : body
    }

    /// Returns the number of pieces at the start of the content that `source` already contains.
    package func fetchedPieces(in source: AttachmentSource) async throws(VaultError) -> Int {
        guard let attachment else { return 0 }
        return try await items.fetchedPieces(of: attachment, in: source)
    }

    /// Returns the offset of a piece, in bytes.
    package func offset(of index: Int) -> Int64 {
        min(Int64(index) * Int64(attachment?.chunkByteCount ?? Attachment.chunkByteCount), byteCount)
    }

    /// Returns true when the content is UTF-8. It is read up to the first invalid byte.
    package func isText() async throws(VaultError) -> Bool {
        var text = UTF8Pieces()
        for index in 0..<count {
            guard text.append(try await piece(index)) != nil else { return false }
        }
        return text.isComplete
    }
}

/// Text that arrives in pieces of bytes. A character's bytes can be in two pieces.
package struct UTF8Pieces {
    /// The beginning of a character that ends in the next piece.
    private var rest: [UInt8] = []

    package init() {}

    /// True when no bytes are missing.
    package var isComplete: Bool { rest.isEmpty }

    /// Returns the characters that are complete now; nil when the bytes are not UTF-8 (RFC 3629).
    package mutating func append(_ piece: some ByteSource) -> String? {
        piece.withContiguousBytes { bytes in
            let end = bytes.count - Self.unfinishedCount(bytes)
            let text: String?
            if rest.isEmpty {
                text = String(strictUTF8: bytes[..<end])
                rest = Array(bytes[end...])
            } else if end <= 0 || bytes.count < 4 {
                // The character may end in this piece or in a later one.
                let joined = rest + bytes
                let end = joined.count - joined.withUnsafeBytes { Self.unfinishedCount($0) }
                text = String(strictUTF8: joined[..<end])
                rest = Array(joined[end...])
            } else {
                text = String(strictUTF8: rest + bytes[..<end])
                rest = Array(bytes[end...])
            }
            return text
        }
    }

    /// Returns the number of bytes at the end that begin an incomplete character: 0 to 3.
    private static func unfinishedCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        for count in 1...3 where count <= bytes.count {
            let byte = bytes[bytes.count - count]
            if byte & 0b1100_0000 == 0b1000_0000 { continue }
            let length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1
            return length > count ? count : 0
        }
        return 0
    }
}
