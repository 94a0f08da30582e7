public import Cryptography
internal import Foundation

/// Content of any length that belongs to an item: the manifest, which is the item's body.
///
/// Short content is in the manifest itself. Longer content is in chunks, which are items of a separate collection.
/// Devices fetch them on demand. A manifest has a line with the format, a line of JSON, and the short content:
///
///     saltern-attachment-1 ⏎ {"byteCount":…,"chunkByteCount":…,"chunks":[…],…} ⏎ content
public struct Attachment: Sendable, Equatable {
    /// The id of the attachment. It is the same in all versions, so unchanged chunks are not sent again.
    public let id: ItemID
    /// The length of the content, in bytes.
    public let byteCount: Int64
    /// SHA-256 of the content.
    public let digest: [UInt8]
    /// Texts of the app, such as a name and a media type. They are sealed with the manifest.
    public var properties: [String: String]
    let chunkByteCount: Int
    /// The chunks' ids in order; empty when the content is `inline`.
    let chunks: [ItemID]
    let inline: SecureBytes?

    /// The collection of all chunks.
    public static let chunkCollection = "saltern-chunks"
    /// A chunk's size, unless the plan allows less.
    static let chunkByteCount = 512 << 10

    private static let mark = Array("saltern-attachment-1\n".utf8)

    /// The length of a manifest's first line, in bytes.
    static let markByteCount = mark.count

    private struct Head: Codable {
        var id: ItemID
        var byteCount: Int64
        var digest: Base64Bytes
        var properties: [String: String]
        var chunkByteCount: Int
        var chunks: [ItemID]
    }

    init(
        id: ItemID, byteCount: Int64, digest: [UInt8], properties: [String: String], chunkByteCount: Int,
        chunks: [ItemID], inline: SecureBytes?
    ) {
        self.id = id
        self.byteCount = byteCount
        self.digest = digest
        self.properties = properties
        self.chunkByteCount = chunkByteCount
        self.chunks = chunks
        self.inline = inline
    }

    /// Returns the number of chunks of `size` bytes for content that is not in the manifest.
    static func chunkCount(of byteCount: Int64, each size: Int) -> Int64 {
        let (whole, rest) = byteCount.quotientAndRemainder(dividingBy: Int64(size))
        return whole + (rest > 0 ? 1 : 0)
    }

    /// The number of pieces that ``Vault/piece(_:of:)`` reads.
    public var pieceCount: Int { inline == nil ? chunks.count : 1 }

    /// Parses an item's body.
    /// - Returns: nil for a body that is not a manifest.
    public init?(_ body: SecureBytes) {
        let parts: (head: Head, inline: SecureBytes)? = body.withUnsafeBytes { bytes in
            guard bytes.starts(with: Self.mark),
                let end = bytes[Self.mark.count...].firstIndex(of: UInt8(ascii: "\n")),
                let head = try? JSONDecoder().decode(Head.self, from: Data(bytes[Self.mark.count..<end]))
            else { return nil }
            return (head, SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])))
        }
        guard let (head, content) = parts else { return nil }
        self.init(head, content)
    }

    /// Returns nil when head and content do not match.
    private init?(_ head: Head, _ content: SecureBytes) {
        guard head.byteCount >= 0, head.chunkByteCount > 0, head.digest.bytes.count == 32 else { return nil }
        if head.chunks.isEmpty {
            guard content.count == head.byteCount else { return nil }
        } else {
            let count = Self.chunkCount(of: head.byteCount, each: head.chunkByteCount)
            guard count == head.chunks.count, content.isEmpty else { return nil }
        }
        self.init(
            id: head.id, byteCount: head.byteCount, digest: head.digest.bytes, properties: head.properties,
            chunkByteCount: head.chunkByteCount, chunks: head.chunks, inline: head.chunks.isEmpty ? content : nil)
    }

    /// Returns true when a body has the first line of a manifest.
    static func isMarked(_ body: SecureBytes) -> Bool { body.withUnsafeBytes { $0.starts(with: mark) } }

    /// The manifest, for the body of an item.
    public func body() -> SecureBytes {
        let head = Head(
            id: id, byteCount: byteCount, digest: Base64Bytes(digest), properties: properties,
            chunkByteCount: chunkByteCount, chunks: chunks)
        let encoder = JSONEncoder()
        // Sorted keys: equal attachments have equal bytes.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let json = try? encoder.encode(head) else { preconditionFailure("numbers and texts can be encoded") }
        let prefix = Self.mark + json + [UInt8(ascii: "\n")]
        let count = prefix.count + (inline?.count ?? 0)
        return SecureBytes(count: count) { buffer in
            buffer.copyBytes(from: prefix)
            inline?.withUnsafeBytes { content in
                UnsafeMutableRawBufferPointer(rebasing: buffer[prefix.count...]).copyMemory(from: content)
            }
        }
    }

    /// Returns the length of a piece, in bytes.
    func byteCount(ofPiece index: Int) -> Int {
        Int(min(Int64(chunkByteCount), byteCount - Int64(index) * Int64(chunkByteCount)))
    }
}

/// An attachment in an app's value, at any position, also in lists and nested values. The server keeps its chunks as
/// long as an item contains it. ``AttachmentSearch`` lists the encodings in which it is found.
extension Attachment: Codable {
    enum CodingKeys: String, CodingKey {
        case version = "saltern-attachment"
        case id, byteCount, digest, properties, chunkByteCount, chunks, content
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let head = Head(
            id: try container.decode(ItemID.self, forKey: .id),
            byteCount: try container.decode(Int64.self, forKey: .byteCount),
            digest: try container.decode(Base64Bytes.self, forKey: .digest),
            properties: try container.decodeIfPresent([String: String].self, forKey: .properties) ?? [:],
            chunkByteCount: try container.decode(Int.self, forKey: .chunkByteCount),
            chunks: try container.decodeIfPresent([ItemID].self, forKey: .chunks) ?? [])
        let content = try container.decodeIfPresent(SecretBytes.self, forKey: .content)?.bytes
        guard try container.decode(Int.self, forKey: .version) == 1,
            let attachment = Self(head, content ?? SecureBytes(copying: [UInt8]()))
        else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: container, debugDescription: "not an attachment of this version")
        }
        self = attachment
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(1, forKey: .version)
        try container.encode(id, forKey: .id)
        try container.encode(byteCount, forKey: .byteCount)
        try container.encode(Base64Bytes(digest), forKey: .digest)
        if !properties.isEmpty { try container.encode(properties, forKey: .properties) }
        try container.encode(chunkByteCount, forKey: .chunkByteCount)
        if !chunks.isEmpty { try container.encode(chunks, forKey: .chunks) }
        if let inline { try container.encode(SecretBytes(inline), forKey: .content) }
    }
}
