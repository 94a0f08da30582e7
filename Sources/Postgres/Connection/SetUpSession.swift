/// The first statement of every session: its limits, its search path, and whatever changes text or the meaning of statements
/// (``SessionSettings``). Answers who serves it.
///
/// Bitmap scans are off: a page of a listing walks an index in order and stops, and where the planner knows too little it
/// would rather read and sort everything of its owner.
///
/// Sequential scans are off where the configuration says so (``PostgresConfiguration/allowsSequentialScans``).
///
/// Nothing is compiled. Where nested loops are forbidden, as for a rotation's commit, one that cannot be avoided makes a plan
/// count as the dearest there is, and LLVM took one to two seconds of a core for a statement about a few rows.
///
/// Warnings are asked for, whatever the role's default is: one of them puts a commit in doubt (``ServerWarnings``).
///
/// Limits that a transaction sets for itself hold on all nodes of a cluster that take part in it. Elsewhere that setting is a
/// name without meaning.
///
/// Each execution has a plan of its own on a cluster: a node of Citus 13.2 that has the rows keeps another 30 kB each time
/// that a plan is used again (github.com/citusdata/citus/pull/8824), and planning anew costs no more there.
///
/// One round trip of ordinary SQL, because poolers between client and server refuse or ignore start-up options.
struct SetUpSession: Statement {
    static let sql: SQL<Self> = """
        SELECT pid, backend_start, pg_postmaster_start_time(), pg_is_in_recovery(), cluster.is_there,
            set_config('statement_timeout', \(\.configuration.statementTimeout.setting), false),
            set_config('lock_timeout', \(\.configuration.sharedLockTimeout.setting), false),
            set_config('idle_in_transaction_session_timeout', \(\.configuration.idleInTransactionTimeout.setting),
                false),
            set_config('search_path', \(\.configuration.searchPath), false),
            set_config('enable_bitmapscan', 'off', false),
            CASE WHEN NOT \(\.configuration.allowsSequentialScans) THEN set_config('enable_seqscan', 'off', false) END,
            set_config('jit', 'off', false),
            set_config('client_min_messages', 'warning', false),
            set_config('citus.propagate_set_commands', 'local', false),
            CASE WHEN cluster.is_there THEN set_config('plan_cache_mode', 'force_custom_plan', false) END,
            (\(settings))
        FROM pg_stat_get_activity(pg_backend_pid()),
            (SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')) AS cluster (is_there)
        """

    private static let settings = SessionSettings.query(isLocal: false)

    let configuration: PostgresConfiguration

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ServerEnd { try ServerEnd(row: &row) }
}

/// The first statement where each transaction has another session: sets nothing, and answers who serves it.
struct FindServer: Statement {
    typealias Row = ServerEnd

    static let sql: SQL<Self> = """
        SELECT NULL::int, NULL::timestamptz, pg_postmaster_start_time(), pg_is_in_recovery(),
            EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')
        """
}

extension Duration {
    /// As a setting of PostgreSQL, which reads a number without unit as milliseconds, and 0 as "no limit".
    var setting: String { String(max(0, (microseconds + 999) / 1_000)) }
}

/// What a connection leads to.
struct ServerEnd: DecodableRow {
    /// Nil when it is another one with each transaction.
    var backend: Backend?
    /// Tells this server from others, and from itself before a restart.
    var serverStartedAt: Timestamp
    var isStandby: Bool
    /// Whether the database can have tables whose rows are on other nodes. It has what it takes before it has them, so no
    /// session is mistaken when tables are distributed later.
    var isDistributed: Bool

    init(row: inout RowReader) throws(PostgresError) {
        let (pid, startedAt): (Int32?, Timestamp?) = (try row.next(), try row.next())
        backend = pid.map { Backend(pid: $0, startedAt: startedAt) }
        serverStartedAt = try row.next()
        isStandby = try row.next()
        isDistributed = try row.next()
    }
}

/// The server's end of a connection.
struct Backend: Hashable {
    var pid: Int32
    /// Tells it from a later process of the same number.
    var startedAt: Timestamp?
}

/// The limits of a connection that is somebody's own: nobody waits behind its locks.
struct SetLeaseTimeouts: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = """
        SELECT set_config('statement_timeout', \(\.configuration.statementTimeout.setting), \(\.isLocal)),
            set_config('lock_timeout', \(\.configuration.lockTimeout.setting), \(\.isLocal))
        """

    let configuration: PostgresConfiguration
    /// Until the transaction ends, or else until the session does.
    let isLocal: Bool
}
