internal import Postgres

/// Checks if the decoys are due for a new draw. A separate statement, because the draw reads many rows.
struct AreDecoysDue: Statement {
    typealias Row = Bool

    let drawnBefore: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT true FROM saltern.installation i WHERE i.singleton AND i.decoys_drawn_at <= \(\.drawnBefore)"
}

/// Samples the quantiles of the accounts' present iteration counts. It reads only a part of the table's pages; a
/// cluster takes that part of each shard.
///
/// The k-th of 256 is the quantile at (k - 1/2)/256. A count of a share p of the accounts fills about 256·p slots.
struct SampleIterations: Statement {
    struct Row: Sendable {
        /// The number of sampled accounts.
        let count: Int64
        /// Nil for an empty sample.
        let quantiles: [Int32]?
    }

    /// The part of the pages, 100 for all.
    let percent: Double

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*), percentile_disc(ARRAY[\(middles)]::double precision[]) WITHIN GROUP (ORDER BY kdf_iterations)
        FROM saltern.logins TABLESAMPLE SYSTEM (\(\.percent)::double precision)
        """

    /// The middle of each slot, as literals: a cluster gathers the rows to sort and accepts only constants.
    private static let middles = (0..<DecoyParameters.slotCount)
        .map { "\(2 * $0 + 1) / \(2 * DecoyParameters.slotCount).0" as SQLFragment }.joined(separator: ", ")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Replaces the decoys. Returns a row if it did, and none if another node was faster.
struct ReplaceDecoys: Statement {
    typealias Row = Bool

    let iterations: [Int32]
    let now: Timestamp
    let drawnBefore: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i SET decoy_iterations = \(\.iterations), decoys_drawn_at = \(\.now)
        WHERE i.singleton AND i.decoys_drawn_at <= \(\.drawnBefore)
        RETURNING true
        """
}
