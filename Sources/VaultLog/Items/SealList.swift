public import Cryptography

/// The edits that count of a writer that entries cut off, as a manager lists them: item id (16) ‖ mark of the edit (32)
/// in ascending order of ids.
///
/// The list lies beside the log, in plain bytes. The entry contains its hash, so it does not matter which member or
/// server supplies it.
public struct SealList: Hashable, Sendable {
    /// The listed edits.
    public let edits: [VaultItemID: EditMark]
    /// The bytes.
    public let bytes: [UInt8]
    /// SHA-256 of the bytes.
    public let digest: SHA256Digest

    /// The bytes of one edit.
    public static let editByteCount = VaultItemID.byteCount + SHA256Digest.byteCount

    /// Lists edits.
    public init(_ edits: [VaultItemID: EditMark]) {
        self.edits = edits
        bytes = edits.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
            .flatMap { $0.key.bytes + $0.value.bytes }
        digest = SHA256.hash(bytes)
    }

    /// Reads a list.
    /// - Returns: nil for bytes that are no list, or not in ascending order.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count % Self.editByteCount == 0, bytes.count / Self.editByteCount <= Int(Seal.limit) else {
            return nil
        }
        var reader = ByteReader(bytes[...])
        var edits: [VaultItemID: EditMark] = [:]
        var last: VaultItemID?
        while !reader.isAtEnd {
            guard let item = reader.id(VaultItemID.self), let mark = reader.take(SHA256Digest.byteCount),
                last.map({ $0.bytes.lexicographicallyPrecedes(item.bytes) }) ?? true
            else { return nil }
            edits[item] = EditMark(mark)
            last = item
        }
        self.edits = edits
        self.bytes = bytes
        digest = SHA256.hash(bytes)
    }

    /// Returns true for the list of a seal.
    public func isList(of seal: Seal) -> Bool { edits.count == Int(seal.count) && digest == seal.digest }
}
