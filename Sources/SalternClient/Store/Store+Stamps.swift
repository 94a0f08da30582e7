/// Identifies the present version of an item.
struct StoreStamp: Hashable, Sendable {
    var collection: String
    var revision: Int64?
    var sequence: Int64?
}

extension Store {
    /// Returns the present version of each item, without reading its content.
    func stamps() throws -> [ItemID: StoreStamp] {
        let stamps = try database.rows(
            """
            SELECT id, collection, revision, NULL FROM items i WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL
            SELECT c.id, c.collection, i.revision, c.sequence FROM changes c LEFT JOIN items i ON i.id = c.id
            WHERE c.collection IS NOT NULL
            """
        ) { row in
            (
                try Self.id(row, 0),
                StoreStamp(collection: row.text(1) ?? "", revision: row.integer(2), sequence: row.integer(3))
            )
        }
        return Dictionary(stamps) { _, last in last }
    }
}
