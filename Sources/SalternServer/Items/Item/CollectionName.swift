internal import HTTPCore
internal import Postgres

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
