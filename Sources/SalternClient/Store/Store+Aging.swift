/// Permanent removal after a period. Periods are measured by the age of the store instead of the wall clock, which can
/// be wrong. The age is a count of seconds that grows with confirmed readings of the clock, by a limited amount each
/// time. A row ages from the first confirmed reading after it was stored.
extension Store {
    /// The longest time between two confirmed readings that counts, in seconds.
    static let ageStepLimit: Int64 = 7 * 86_400

    /// The shortest time between two readings that are stored, in seconds.
    private static let ageStepMinimum: Int64 = 3_600

    /// The seconds of the store's age after which trash and records of deleted items are removed.
    static let keptSeconds: Int64 = 30 * 86_400

    /// Tables whose rows are removed after a period, with the columns of their key and of the time that distinguishes
    /// rows.
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
            // A clock that was set back adds nothing. Later readings count from there.
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

    /// Removes trash, replaced versions and records of deleted items of this age.
    func removeAged(at age: Int64) throws {
        try removeAged(Self.agingTables, at: age)
    }

    /// Removes replaced versions of this age.
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

    /// The location of a chunk that no item names.
    enum ChunkPlace: String {
        case server = "chunk"
        /// Its content waits on this device to be sent.
        case waiting = "waiting-chunk"
    }

    /// Records the age of the store at which a chunk was first found without a name.
    func noteUnnamed(_ id: ItemID, _ place: ChunkPlace = .server, at age: Int64) throws {
        try database.execute(
            "INSERT OR IGNORE INTO aging (kind, key, stamp, since) VALUES (?, ?, 0, ?)", .text(place.rawValue),
            .blob(id.bytes), .integer(age))
    }

    /// Records that an item names the chunk, or that it was deleted.
    func forgetUnnamed(_ id: ItemID, _ place: ChunkPlace = .server) throws {
        try database.execute("DELETE FROM aging WHERE kind = ? AND key = ?", .text(place.rawValue), .blob(id.bytes))
    }

    /// Returns, for each chunk without a name, the age of the store since which it has none.
    func unnamedChunks(_ place: ChunkPlace = .server) throws -> [ItemID: Int64] {
        let rows = try database.rows("SELECT key, since FROM aging WHERE kind = ?", .text(place.rawValue)) {
            (try Self.id($0, 0), $0.integer(1) ?? 0)
        }
        return Dictionary(rows) { _, last in last }
    }
}
