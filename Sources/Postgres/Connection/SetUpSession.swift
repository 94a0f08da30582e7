/// The first statement of every session. It returns the server's end.
///
/// It sets limits, the search path, and all settings that change text or the meaning of statements
/// (``SessionSettings``). It is one round trip of ordinary SQL, because poolers reject or ignore start-up options.
///
/// - Bitmap scans are off. A page of a listing walks an index in order and stops. With poor statistics the planner
///   would read and sort all rows of the owner.
/// - Sequential scans are off unless the configuration allows them (``PostgresConfiguration/allowsSequentialScans``).
/// - JIT is off. Where nested loops are disabled, as for a rotation's commit, an unavoidable one gives the plan the
///   highest cost. LLVM then took 1 to 2 s of a core for a statement about a few rows.
/// - Warnings are on, whatever the role's default: some of them put a commit in doubt (``ServerWarnings``).
/// - On a cluster, limits that a transaction sets for itself apply to all of its nodes. Elsewhere this setting has no
///   effect.
/// - On a cluster, each execution has its own plan. A node of Citus 13.2 that has the rows leaks 30 kB for each reuse
///   of a plan (github.com/citusdata/citus/pull/8824). Planning again costs no more there.
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

/// The first statement where each transaction has another session. It returns the server's end and sets nothing.
struct FindServer: Statement {
    typealias Row = ServerEnd

    static let sql: SQL<Self> = """
        SELECT NULL::int, NULL::timestamptz, pg_postmaster_start_time(), pg_is_in_recovery(),
            EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')
        """
}

extension Duration {
    /// The duration as a setting of PostgreSQL: milliseconds without unit, where 0 means "no limit".
    var setting: String { String(max(0, (microseconds + 999) / 1_000)) }
}

/// The server behind a connection.
struct ServerEnd: DecodableRow {
    /// The session's process; nil if each transaction has another one.
    var backend: Backend?
    /// Identifies this run of this server.
    var serverStartedAt: Timestamp
    var isStandby: Bool
    /// True if the database can have tables with rows on other nodes.
    ///
    /// The extension exists before the first such table, so sessions stay right when tables are distributed later.
    var isDistributed: Bool

    init(row: inout RowReader) throws(PostgresError) {
        let (pid, startedAt): (Int32?, Timestamp?) = (try row.next(), try row.next())
        backend = pid.map { Backend(pid: $0, startedAt: startedAt) }
        serverStartedAt = try row.next()
        isStandby = try row.next()
        isDistributed = try row.next()
    }
}

/// The server process of a session.
struct Backend: Hashable {
    var pid: Int32
    /// Distinguishes it from a later process with the same number.
    var startedAt: Timestamp?
}

/// Sets the limits of a leased connection: no other request waits behind its locks.
struct SetLeaseTimeouts: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = """
        SELECT set_config('statement_timeout', \(\.configuration.statementTimeout.setting), \(\.isLocal)),
            set_config('lock_timeout', \(\.configuration.lockTimeout.setting), \(\.isLocal))
        """

    let configuration: PostgresConfiguration
    /// True to set them until the transaction ends, false until the session ends.
    let isLocal: Bool
}

/// The settings that change how PostgreSQL reads and writes text, or the meaning of statements.
///
/// Their defaults depend on role, database, server and libpq's environment, so this program's sessions set all of them.
/// Names that the server does not have are left out.
enum SessionSettings {
    /// Returns a query with one row that sets all of them: for the transaction if `isLocal`, otherwise for the session.
    static func query(isLocal: Bool) -> SQLFragment {
        let scope: SQLFragment = isLocal ? "true" : "false"
        return """
            SELECT count(pg_catalog.set_config(needed.name, needed.value, \(scope)))
            FROM (VALUES ('array_nulls', 'on'), ('bytea_output', 'hex'), ('check_function_bodies', 'on'),
                ('DateStyle', 'ISO, MDY'), ('default_transaction_deferrable', 'off'), ('extra_float_digits', '1'),
                ('IntervalStyle', 'postgres'), ('quote_all_identifiers', 'off'), ('row_security', 'on'),
                ('standard_conforming_strings', 'on'), ('TimeZone', 'UTC'), ('transaction_timeout', '0'),
                ('transform_null_equals', 'off'), ('xmloption', 'content')) AS needed (name, value)
            WHERE pg_catalog.current_setting(needed.name, true) IS NOT NULL
            """
    }
}

extension PostgresConfiguration {
    /// SQL that gives sessions of PostgreSQL's own programs the settings of this program's sessions. It prints nothing.
    ///
    /// A commit of such a session is on disk when it returns.
    public static var sessionScript: String {
        """
        DO $$ BEGIN
            PERFORM (\(SessionSettings.query(isLocal: false).text));
            IF pg_catalog.current_setting('synchronous_commit') = 'off' THEN
                PERFORM pg_catalog.set_config('synchronous_commit', 'on', false);
            END IF;
        END $$;
        """
    }
}
