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

/// The name of a group of items, visible to the server: 1 to 32 of `a-z`, `0-9` and `-`.
struct CollectionName: Sendable, Hashable {
    let name: String

    /// The collection of an item that names none.
    static let standard = CollectionName(unchecked: "default")

    /// The same as an SQL literal.
    static let standardSQL: SQLFragment = "'default'"

    private init(unchecked name: String) {
        self.name = name
    }

    init?(_ name: String) {
        guard (1...32).contains(name.utf8.count), name.utf8.allSatisfy(Self.isAllowed) else { return nil }
        self.name = name
    }

    init(json: JSONValue) throws(Problem) {
        guard let collection = CollectionName(try json.string()) else {
            throw Problem(
                .unprocessableContent, "invalid_collection",
                detail: "A collection name must have 1 to 32 of the characters a-z, 0-9 and -.")
        }
        self = collection
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

extension CollectionName: PathParameterConvertible {
    init?(pathParameter text: String) { self.init(text) }
}
