internal import Postgres

/// Whether the decoys were drawn long enough ago. Asked by itself: what draws them reads many rows.
struct AreDecoysDue: Statement {
    typealias Row = Bool

    let drawnBefore: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT true FROM saltern.installation i WHERE i.singleton AND i.decoys_drawn_at <= \(\.drawnBefore)"
}

/// The quantiles of the iteration counts that some of the accounts have now: those on a part of the table's pages, which are
/// the only ones that are read. A cluster takes its part of each shard.
///
/// The k-th of 256 is the quantile at (k - 1/2)/256, so a count that a share p of the accounts has fills about
/// 256·p slots.
struct SampleIterations: Statement {
    struct Row: Sendable {
        /// How many accounts are in it.
        let count: Int64
        /// Nil when there is none.
        let quantiles: [Int32]?
    }

    /// Of the pages, 100 for all of them.
    let percent: Double

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*), percentile_disc(ARRAY[\(middles)]::double precision[]) WITHIN GROUP (ORDER BY kdf_iterations)
        FROM saltern.logins TABLESAMPLE SYSTEM (\(\.percent)::double precision)
        """

    /// The middle of each slot. Written out: a cluster gathers what it sorts, and takes constants only.
    private static let middles = (0..<DecoyParameters.slotCount)
        .map { "\(2 * $0 + 1) / \(2 * DecoyParameters.slotCount).0" as SQLFragment }.joined(separator: ", ")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Replaces the decoys; one row when it did, none when somebody else has done so meanwhile.
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
