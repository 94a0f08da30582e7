public import Foundation

/// What a client says an item is.
public struct ItemContent: Codable, Hashable, Sendable {
    public var collection: String
    public var format: String
    /// Only for formats that derive a key from a password.
    public var iterations: Int?
    public var title: Base64Bytes?
    public var body: Base64Bytes

    public init(collection: String, format: String, iterations: Int? = nil, title: [UInt8]? = nil, body: [UInt8]) {
        self.collection = collection
        self.format = format
        self.iterations = iterations
        self.title = title.map(Base64Bytes.init)
        self.body = Base64Bytes(body)
    }
}

/// An item as the server has it, or the tombstone that is left of it.
public struct ItemState: Decodable, Hashable, Sendable {
    public let id: ItemID
    public let revision: Revision
    public let collection: String
    public let createdAt: Date
    public let updatedAt: Date
    public let deleted: Bool
    /// Nil for a tombstone, and where only headers were asked for.
    public let format: String?
    public let iterations: Int?
    public let title: Base64Bytes?
    public let body: Base64Bytes?

    /// The content, when there is one.
    public var content: ItemContent? {
        guard let format, let body, !deleted else { return nil }
        return ItemContent(
            collection: collection, format: format, iterations: iterations, title: title?.bytes, body: body.bytes)
    }
}

/// One page of a listing.
public struct ItemPage: Decodable, Sendable {
    public let items: [ItemState]
    public let nextPage: String?
}

/// An older version of an item that the server keeps, without its sealed bytes.
public struct VersionHeader: Decodable, Hashable, Sendable {
    /// The item's revision while it held this.
    public let revision: Revision
    public let collection: String
    /// Sealed bytes of title and body.
    public let bytes: Int64
    public let updatedAt: Date
    public let replacedAt: Date
    public let expiresAt: Date
}

/// One page of older versions.
public struct VersionPage: Decodable, Sendable {
    public let versions: [VersionHeader]
    public let nextPage: String?
}

/// What a write expects to find.
public enum Precondition: Hashable, Sendable {
    /// There is no such item.
    case absent
    /// It is at this revision.
    case revision(Revision)
    /// It exists, whatever it is.
    case present

    var field: (name: String, value: String) {
        switch self {
        case .absent: ("If-None-Match", "*")
        case .revision(let revision): ("If-Match", revision.entityTag)
        case .present: ("If-Match", "*")
        }
    }
}

/// One operation of a batch.
public enum BatchOperation: Encodable, Hashable, Sendable {
    /// - `ifRevision`: nil for whatever is there; revision 0 for an item that is new.
    case put(ItemID, ItemContent, ifRevision: Revision?)
    case delete(ItemID, ifRevision: Revision?)

    private enum CodingKeys: CodingKey {
        case op, id, ifRevision, collection, format, iterations, title, body
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .put(let id, let content, let ifRevision):
            try container.encode("put", forKey: .op)
            try container.encode(id, forKey: .id)
            try container.encodeIfPresent(ifRevision, forKey: .ifRevision)
            try content.encode(to: encoder)
        case .delete(let id, let ifRevision):
            try container.encode("delete", forKey: .op)
            try container.encode(id, forKey: .id)
            try container.encodeIfPresent(ifRevision, forKey: .ifRevision)
        }
    }
}

/// The revisions that a batch has given out, in the order of its operations.
public struct BatchResult: Decodable, Sendable {
    public struct Entry: Decodable, Sendable {
        public let id: ItemID
        public let revision: Revision
    }
    public let results: [Entry]
}

/// One page of changes, in the order of their revisions.
public struct ChangePage: Decodable, Sendable {
    public let changes: [ItemState]
    /// Where the next page begins; opaque.
    public let cursor: String
    public let more: Bool
    /// Below it, the database's history is another one than before: it has been restored since.
    public let revisionBase: Int64?
}
