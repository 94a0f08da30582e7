internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Where a page of items begins, and in which listing: opaque to clients.
struct ItemPage: PathParameterConvertible, Equatable {
    /// No item of the page comes before it.
    let first: ItemID
    /// The collection that the listing is restricted to.
    let collection: CollectionName?
    let fields: ItemFields

    /// Where the first page begins.
    static let lowest = ItemID(.zero)

    /// Tells this kind of token, and its version, from any other.
    private static let tag: UInt8 = 0x01
    private static let fixedByteCount = 18

    /// The page that begins behind an item; nil behind the last one that there can be.
    init?(after last: ItemID, collection: CollectionName? = nil, fields: ItemFields = .all) {
        let (low, isCarried) = last.uuid.low.addingReportingOverflow(1)
        if isCarried, last.uuid.high == .max { return nil }
        first = ItemID(UUID(high: last.uuid.high &+ (isCarried ? 1 : 0), low: low))
        self.collection = collection
        self.fields = fields
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count >= Self.fixedByteCount, bytes[0] == Self.tag,
            let uuid = UUID(bytes: Array(bytes[1..<17])), let fields = ItemFields(rawValue: bytes[17])
        else { return nil }
        first = ItemID(uuid)
        self.fields = fields
        if bytes.count == Self.fixedByteCount {
            collection = nil
        } else {
            guard let name = CollectionName(String(decoding: bytes[18...], as: UTF8.self)) else { return nil }
            collection = name
        }
    }

    var text: String {
        Base64URL.encodeToString(
            [Self.tag] + first.uuid.bytes + [fields.rawValue] + Array((collection?.name ?? "").utf8))
    }
}
