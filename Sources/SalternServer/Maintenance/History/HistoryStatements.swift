internal import Postgres

/// What the database says of itself: which history it is, which one it was when somebody last looked, and what time it
/// is.
struct ReadDatabase: Statement {
    struct Row: Sendable {
        /// Nil on a standby.
        let fingerprint: DatabaseFingerprint?
        /// Nil before the installation was made.
        let known: DatabaseFingerprint?
        let time: Timestamp
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT saltern.database_fingerprint(), (SELECT i.fingerprint FROM saltern.installation i WHERE i.singleton),
            pg_catalog.clock_timestamp()
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Keeps changes of accounts out until the transaction ends, after those under way: so none counts on from a base that is
/// being moved, and becomes visible below numbers that clients have seen.
struct KeepChangesOut: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "LOCK TABLE saltern.accounts IN SHARE MODE"
}

/// Moves the base, and notes the history that it belongs to; no row when somebody else was faster.
///
/// The time is the database's, and so finer than a second: two failovers within one still differ.
struct MoveRevisionBase: Statement {
    /// The new base.
    typealias Row = Int64

    /// What was noted when it was decided to move.
    let known: DatabaseFingerprint
    let fingerprint: DatabaseFingerprint

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i
        SET revision_base = greatest(i.revision_base,
                (extract(epoch FROM pg_catalog.clock_timestamp()) * 1048576)::bigint),
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
