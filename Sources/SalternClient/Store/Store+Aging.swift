/// Removal for good after a while. It does not follow the wall clock, which can be wrong, but the age of the store: a count of
/// seconds that grows with confirmed readings of the clock, by a limited amount each time. A row ages from the first
/// confirmed reading that finds it.
extension Store {
    /// A longer time between two confirmed readings counts as this, in seconds.
    static let ageStepLimit: Int64 = 7 * 86_400

    /// More frequent readings write nothing.
    private static let ageStepMinimum: Int64 = 3_600

    /// How long trash, and what is known of deleted items, is kept, in seconds of the store's age.
    static let keptSeconds: Int64 = 30 * 86_400

    /// Tables whose rows are removed after a while, with the columns of their key and of the time that tells two rows apart.
    private static let agingTables = [
        ("trash", "id", "removed_at"), ("graves", "id", "noted_at"), ("versions", "number", "replaced_at"),
    ]

    /// Advances the age of the store with a reading of the clock that the server has confirmed.
    /// - Parameter moment: Seconds since 1970.
    /// - Returns: The age in seconds.
    func advanceAge(to moment: Int64) throws -> Int64 {
        let age = try number(.age) ?? 0
        if let last = try number(.agedAt), age > 0 {
            let step = moment.subtractingReportingOverflow(last)
            // A clock that goes back makes nothing older. From there on it is followed again.
            let counted = step.overflow ? 0 : min(max(step.partialValue, 0), Self.ageStepLimit)
            if (0..<Self.ageStepMinimum).contains(step.partialValue) && !step.overflow { return age }
            try set(.age, age + counted)
            try set(.agedAt, moment)
            return age + counted
        }
        try set(.age, 1)
        try set(.agedAt, moment)
        return 1
    }

    /// Removes content that has been in the trash for long enough, replaced versions of that age, and records of deleted items.
    func removeAged(at age: Int64) throws {
        try removeAged(Self.agingTables, at: age)
    }

    /// Removes replaced versions of that age.
    func removeAgedVersions(at age: Int64) throws {
        try removeAged(Self.agingTables.filter { $0.0 == "versions" }, at: age)
    }

    private func removeAged(_ tables: [(String, String, String)], at age: Int64) throws {
        try database.transaction {
            for (table, key, stamp) in tables {
                try database.execute(
                    "INSERT OR IGNORE INTO aging (kind, key, stamp, since) SELECT ?, \(key), \(stamp), ? FROM \(table)",
                    .text(table), .integer(age))
                try database.execute(
                    """
                    DELETE FROM \(table) WHERE EXISTS (
                        SELECT 1 FROM aging a
                        WHERE a.kind = ?1 AND a.key = \(table).\(key) AND a.stamp = \(table).\(stamp) AND a.since <= ?2)
                    """, .text(table), .integer(age - Self.keptSeconds))
                try database.execute(
                    """
                    DELETE FROM aging WHERE kind = ?1 AND NOT EXISTS (
                        SELECT 1 FROM \(table) t WHERE t.\(key) = aging.key AND t.\(stamp) = aging.stamp)
                    """, .text(table))
            }
        }
    }

    // MARK: Chunks

    /// Where a chunk is that nothing names.
    enum ChunkPlace: String {
        case server = "chunk"
        /// Its content waits here to be sent.
        case waiting = "waiting-chunk"
    }

    /// Notes at which age of the store a chunk was first found without a name.
    func noteUnnamed(_ id: ItemID, _ place: ChunkPlace = .server, at age: Int64) throws {
        try database.execute(
            "INSERT OR IGNORE INTO aging (kind, key, stamp, since) VALUES (?, ?, 0, ?)", .text(place.rawValue),
            .blob(id.bytes), .integer(age))
    }

    /// Notes that something names the chunk, or that it is gone.
    func forgetUnnamed(_ id: ItemID, _ place: ChunkPlace = .server) throws {
        try database.execute("DELETE FROM aging WHERE kind = ? AND key = ?", .text(place.rawValue), .blob(id.bytes))
    }

    /// Returns since which age of the store nothing names the chunks.
    func unnamedChunks(_ place: ChunkPlace = .server) throws -> [ItemID: Int64] {
        let rows = try database.rows("SELECT key, since FROM aging WHERE kind = ?", .text(place.rawValue)) {
            (try Self.id($0, 0), $0.integer(1) ?? 0)
        }
        return Dictionary(rows) { _, last in last }
    }
}
