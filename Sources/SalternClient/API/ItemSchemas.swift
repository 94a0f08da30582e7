public import Foundation

/// The content of an item as a client sends it.
public struct ItemContent: Codable, Hashable, Sendable {
    /// The collection, `[a-z0-9-]{1,32}`. The server sees it.
    public var collection: String
    /// The format of the sealed bytes, such as `saltern-1`.
    public var format: String
    /// The iterations of the item's own sealing, for formats that derive a key from a password.
    public var iterations: Int?
    /// The sealed title; nil for an item without one.
    public var title: Base64Bytes?
    /// The sealed body.
    public var body: Base64Bytes

    /// Creates the content of an item from sealed bytes.
    public init(collection: String, format: String, iterations: Int? = nil, title: [UInt8]? = nil, body: [UInt8]) {
        self.collection = collection
        self.format = format
        self.iterations = iterations
        self.title = title.map(Base64Bytes.init)
        self.body = Base64Bytes(body)
    }
}

/// An item on the server, or its tombstone.
public struct ItemState: Decodable, Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The account's revision at the item's last change.
    public let revision: Revision
    /// The collection, which the server sees.
    public let collection: String
    /// The time of the item's creation, by the server's clock.
    public let createdAt: Date
    /// The time of the last change, by the server's clock; of a tombstone, the time of the deletion.
    public let updatedAt: Date
    /// True for a tombstone.
    public let deleted: Bool
    /// The format of the sealed bytes; nil for a tombstone and for a listing of headers.
    public let format: String?
    /// The iterations of the item's own sealing, for formats that derive a key from a password.
    public let iterations: Int?
    /// The sealed title; nil for an item without one, a tombstone, or a listing of headers.
    public let title: Base64Bytes?
    /// The sealed body; nil for a tombstone and for a listing of headers.
    public let body: Base64Bytes?

    /// The content; nil for a tombstone and for a listing of headers.
    public var content: ItemContent? {
        guard let format, let body, !deleted else { return nil }
        return ItemContent(
            collection: collection, format: format, iterations: iterations, title: title?.bytes, body: body.bytes)
    }
}

/// One page of a listing.
public struct ItemPage: Decodable, Sendable {
    /// The items of the page.
    public let items: [ItemState]
    /// The argument for the next page; nil on the last one.
    public let nextPage: String?
}

/// An older version of an item that the server keeps, without its sealed bytes.
public struct VersionHeader: Decodable, Hashable, Sendable {
    /// The item's revision while it had this content.
    public let revision: Revision
    /// The collection that the version was in.
    public let collection: String
    /// Sealed bytes of title and body.
    public let bytes: Int64
    /// The time at which the item got this content.
    public let updatedAt: Date
    /// The time at which other content replaced it.
    public let replacedAt: Date
    /// The time at which the server removes the version at the latest.
    public let expiresAt: Date
}

/// One page of older versions.
public struct VersionPage: Decodable, Sendable {
    /// The versions of the page, the latest first.
    public let versions: [VersionHeader]
    /// The argument for the next page; nil on the last one.
    public let nextPage: String?
}

/// The state that a write expects. The server rejects another state with `precondition_failed`.
public enum Precondition: Hashable, Sendable {
    /// The item does not exist.
    case absent
    /// The item has this revision.
    case revision(Revision)
    /// The item exists, at any revision.
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
    /// Creates or replaces an item.
    /// - `ifRevision`: The revision that the item has to have: nil for any, 0 for a new item.
    case put(ItemID, ItemContent, ifRevision: Revision?)
    /// Deletes an item.
    /// - `ifRevision`: The revision that the item has to have; nil for any.
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

/// The revisions that a batch has assigned, in the order of its operations.
public struct BatchResult: Decodable, Sendable {
    /// The outcome of one operation.
    public struct Entry: Decodable, Sendable {
        /// The item that the operation has written or deleted.
        public let id: ItemID
        /// The item's new revision; of a deletion, that of its tombstone.
        public let revision: Revision
    }
    /// One entry for each operation, in their order.
    public let results: [Entry]
}

/// One page of changes, in the order of their revisions.
public struct ChangePage: Decodable, Sendable {
    /// Items and tombstones, each in its present state.
    public let changes: [ItemState]
    /// The argument for the next page; opaque.
    public let cursor: String
    /// True when another page follows now.
    public let more: Bool
    /// The revision base: all further revisions are above it. It rises when the server's database was restored to an
    /// earlier state.
    public let revisionBase: Int64?
}
