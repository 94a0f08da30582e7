extension Store {
    /// The ids of all items as they are here, in their order.
    func currentIDs() throws -> [ItemID] {
        try database.rows(
            """
            SELECT id FROM items i WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL SELECT id FROM changes WHERE collection IS NOT NULL ORDER BY 1
            """
        ) { row in try Self.id(row, 0) }
    }

    /// How many items each collection has here.
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

    /// What is in the trash and nowhere else, the latest first, with the seconds since 1970 at which it was removed.
    func trashedIDs() throws -> [(id: ItemID, removedAt: Int64)] {
        try database.rows("SELECT id, removed_at FROM trash ORDER BY removed_at DESC, id") { row in
            (id: try Self.id(row, 0), removedAt: row.integer(1) ?? 0)
        }.filter { try current($0.id) == nil }
    }
}
