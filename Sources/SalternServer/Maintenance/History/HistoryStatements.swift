internal import Postgres

/// Reads the database's fingerprint, the last recorded one, and the time.
///
/// It reads from the table of migrations, so on a cluster the coordinator answers, for connections to any node.
struct ReadDatabase: Statement {
    struct Row: Sendable {
        /// Nil on a standby.
        let fingerprint: DatabaseFingerprint?
        /// Nil before the installation's row exists.
        let known: DatabaseFingerprint?
        let time: Timestamp
        /// True during an unfinished restore (``UnfinishedRestore``).
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

/// Checks for an unfinished restore while the tables are missing (``UnfinishedRestore``).
struct FindRestoreMark: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(UnfinishedRestore.isMarked)"
}

/// Excludes changes of accounts and vaults until the transaction ends, after the running ones. Otherwise a change could
/// count from a base that is being moved, and become visible below numbers that clients have received.
struct BlockChanges: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "LOCK TABLE saltern.accounts, saltern.vaults IN SHARE MODE"
}

/// Moves the base and records its fingerprint. Returns no row if another node was faster.
///
/// The time has fractions of seconds, so that two failovers within one second differ.
struct MoveRevisionBase: Statement {
    /// The new base.
    typealias Row = Int64

    /// The recorded fingerprint at the time of the decision.
    let known: DatabaseFingerprint
    let fingerprint: DatabaseFingerprint
    /// The database's time.
    let time: Timestamp

    /// Seconds times 2^20. Each restore of a backup gets another number, and JSON represents it exactly until the year
    /// 2242.
    private var number: Int64 { Int64(Double(time.unixMicroseconds) * 1.048576) }

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i
        SET revision_base = greatest(i.revision_base, \(\.number)),
            base_moved_at = \(\.time), fingerprint = \(\.fingerprint)
        WHERE i.singleton AND i.fingerprint = \(\.known)
        RETURNING i.revision_base
        """
}

/// Records the fingerprint of a failover without loss. Returns no row if another node was faster.
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

/// The statements of database rollbacks.
extension StatementList {
    static var history: [any Statement.Type] {
        [
            ReadDatabase.self, FindRestoreMark.self, BlockChanges.self, MoveRevisionBase.self, NoteFingerprint.self,
            FindAccountsWithSessions.self,
        ]
    }
}
