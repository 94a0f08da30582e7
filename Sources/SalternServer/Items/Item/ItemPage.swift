internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The start of a page of items in a listing. Clients treat its text as opaque.
struct ItemPage: PathParameterConvertible, Equatable {
    /// The lowest id that the page may contain.
    let first: ItemID
    /// The collection of the listing.
    let collection: CollectionName?
    let fields: ItemFields

    /// The start of the first page.
    static let lowest = ItemID(.zero)

    /// Identifies this kind of token and its version.
    private static let tag: UInt8 = 0x01
    private static let fixedByteCount = 18

    /// Creates the page behind an item. Nil behind the highest possible id.
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
