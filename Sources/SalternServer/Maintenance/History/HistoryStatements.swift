internal import Postgres

/// What the database says of itself: which history it is, which one it was when somebody last looked, and what time it
/// is.
///
/// All of it is asked where the schema's history is, so on a cluster it is the coordinator that answers, whichever node is
/// connected to.
struct ReadDatabase: Statement {
    struct Row: Sendable {
        /// Nil on a standby.
        let fingerprint: DatabaseFingerprint?
        /// Nil before the installation was made.
        let known: DatabaseFingerprint?
        let time: Timestamp
        /// Whether a restore has not come to its end (``UnfinishedRestore``).
        let isRestoring: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT saltern.database_fingerprint(), i.fingerprint, pg_catalog.clock_timestamp(),
            \(UnfinishedRestore.isMarked)
        FROM saltern.schema_migrations h LEFT JOIN saltern.installation i ON i.singleton
        WHERE h.version = 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Whether a restore is about to bring back what is not there yet (``UnfinishedRestore``).
struct FindRestoreMark: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(UnfinishedRestore.isMarked)"
}

/// Keeps changes of accounts out until the transaction ends, after those under way: so none counts on from a base that is
/// being moved, and becomes visible below numbers that clients have seen.
struct BlockChanges: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "LOCK TABLE saltern.accounts IN SHARE MODE"
}

/// Moves the base, and notes the history that it belongs to; no row when somebody else was faster.
///
/// The time is finer than a second: two failovers within one still differ.
struct MoveRevisionBase: Statement {
    /// The new base.
    typealias Row = Int64

    /// What was noted when it was decided to move.
    let known: DatabaseFingerprint
    let fingerprint: DatabaseFingerprint
    /// The database's.
    let time: Timestamp

    /// Seconds times 2^20: each restore of one backup gets another number, and JSON carries it exactly until the year 2242.
    private var number: Int64 { Int64(Double(time.unixMicroseconds) * 1.048576) }

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i
        SET revision_base = greatest(i.revision_base, \(\.number)),
            fingerprint = \(\.fingerprint)
        WHERE i.singleton AND i.fingerprint = \(\.known)
        RETURNING i.revision_base
        """
}

/// Notes the history of a failover that has lost nothing; no row when somebody else was faster.
struct NoteFingerprint: Statement {
    typealias Row = Bool

    let known: DatabaseFingerprint
    let fingerprint: DatabaseFingerprint

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i SET fingerprint = \(\.fingerprint)
            WHERE i.singleton AND i.fingerprint = \(\.known)
        RETURNING true
        """
}
