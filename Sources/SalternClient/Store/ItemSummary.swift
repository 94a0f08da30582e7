public import Foundation

/// An item in a list, without its content.
public struct ItemSummary: Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The item's collection.
    public let collection: String
    /// The item's title; nil when it has none or the item cannot be opened.
    public let title: String?
    /// The length of the body, in bytes; nil when the item cannot be opened.
    public let byteCount: Int?
    /// True when the server has not confirmed the version of this device.
    public let isUnsent: Bool
    /// The limit of the plan that prevents sending, according to the last known plan; nil otherwise. Shorten the item,
    /// or call ``Vault/discardChange(_:)``.
    public let shortage: PlanShortage?
    /// The time of the deletion, for a deleted item.
    public let removedAt: Date?

    /// Creates a summary, for previews and tests of an app.
    public init(
        id: ItemID, collection: String, title: String?, byteCount: Int?, isUnsent: Bool,
        shortage: PlanShortage? = nil, removedAt: Date? = nil
    ) {
        self.id = id
        self.collection = collection
        self.title = title
        self.byteCount = byteCount
        self.isUnsent = isUnsent
        self.shortage = shortage
        self.removedAt = removedAt
    }
}

extension Store {
    /// Calls `body` with all present items, in the order of their ids. It uses one query, and only one item is in
    /// memory.
    /// - Parameter collection: Nil for all collections.
    func forEachCurrent(
        in collection: String? = nil, _ body: (ItemID, ItemContent, _ isUnsent: Bool) throws -> Void
    ) throws {
        let (items, changes) =
            collection == nil ? ("", "c.collection IS NOT NULL") : ("i.collection = ?1 AND", "c.collection = ?1")
        let columns = "collection, format, iterations, title, body"
        try database.forEach(
            """
            SELECT id, \(columns), 0 FROM items i WHERE \(items) NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL SELECT id, \(columns), 1 FROM changes c WHERE \(changes) ORDER BY 1
            """, collection.map { [.text($0)] } ?? []
        ) { row in try body(Self.id(row, 0), Self.content(row, 1), row.integer(6) == 1) }
    }

    /// Returns true when any version of an item has a format that is not in the set.
    func hasFormats(otherThan formats: Set<String>) throws -> Bool {
        let list = formats.sorted().map { "'\($0)'" }.joined(separator: ", ")
        for table in ["items", "trash", "changes", "versions"] {
            let found = try database.rows("SELECT 1 FROM \(table) WHERE format NOT IN (\(list)) LIMIT 1") { _ in true }
            if !found.isEmpty { return true }
        }
        return false
    }

    /// Calls `body` with the items that are only in the trash, the latest first. `removedAt` is in seconds since 1970.
    func forEachTrashed(
        _ body: (ItemID, ItemContent, _ isUnsent: Bool, _ removedAt: Int64) throws -> Void
    ) throws {
        try database.forEach(
            """
            SELECT t.id, t.collection, t.format, t.iterations, t.title, t.body, c.id IS NOT NULL, t.removed_at
            FROM trash t LEFT JOIN changes c ON c.id = t.id
            WHERE c.collection IS NULL
                AND (c.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM items i WHERE i.id = t.id))
            ORDER BY t.removed_at DESC, t.id
            """
        ) { row in try body(Self.id(row, 0), Self.content(row, 1), row.integer(6) == 1, row.integer(7) ?? 0) }
    }

    /// Returns the number of present items of each collection.
    func collectionCounts() throws -> [String: Int] {
        let counts = try database.rows(
            """
            SELECT collection, count(*) FROM (
                SELECT collection FROM items i WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
                UNION ALL SELECT collection FROM changes WHERE collection IS NOT NULL
            ) GROUP BY collection
            """
        ) { row in
            guard let name = row.text(0), let count = row.integer(1) else { throw StoreError.damaged }
            return (name, Int(count))
        }
        return Dictionary(uniqueKeysWithValues: counts)
    }
}
