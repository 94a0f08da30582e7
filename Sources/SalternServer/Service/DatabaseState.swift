public import Postgres

/// The state of the database for metrics.
public struct DatabaseState: Sendable {
    /// The newest applied migration.
    public let schemaVersion: Int
    /// True if the connected server is a standby.
    public let isInRecovery: Bool
    /// The number of standbys and other receivers of the server's log.
    public let followers: Int
    /// The number of standbys that a commit waits for.
    public let awaitedStandbys: Int
    /// Nil if the server denies the role this query.
    public internal(set) var replication: ReplicationState?

    /// Reads the state.
    ///
    /// - Returns: Nil if the database does not answer within `limit`.
    public static func read(_ database: PostgresClient, within limit: Duration) async -> DatabaseState? {
        await withTaskGroup(of: DatabaseState?.self) { group in
            group.addTask {
                var state = try? await database.execute(ReadDatabaseState()).first
                if state != nil { state?.replication = try? await database.execute(ReadReplicationState()).first }
                return state
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }
}

/// Reads the part of the state that all roles may read. The rest needs `pg_read_all_stats`.
struct ReadDatabaseState: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT (SELECT coalesce(max(version), 0) FROM saltern.schema_migrations), pg_is_in_recovery(),
            (SELECT count(*) FROM pg_stat_get_wal_senders()),
            CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN ''
                ELSE current_setting('synchronous_standby_names') END
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> DatabaseState {
        DatabaseState(
            schemaVersion: Int(try row.next(Int32.self)), isInRecovery: try row.next(),
            followers: Int(try row.next(Int64.self)), awaitedStandbys: awaited(in: try row.next()))
    }

    /// Returns the number of standbys that a commit waits for.
    ///
    /// - Parameter names: `synchronous_standby_names`: a list, or `FIRST 2 (…)`, `2 (…)` or `ANY 2 (…)`.
    static func awaited(in names: String) -> Int {
        if names.allSatisfy(\.isWhitespace) { return 0 }
        let beforeList = names.prefix { $0 != "(" && $0 != "\"" && $0 != "," }
        guard names.dropFirst(beforeList.count).first == "(" else { return 1 }
        return beforeList.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 1
    }
}

/// The lag of the receivers of PostgreSQL's log.
public struct ReplicationState: Sendable {
    /// One receiver, as PostgreSQL reports it.
    public struct Standby: Sendable {
        /// Its `application_name`, which several may share.
        public let name: String
        /// The kind of synchronisation: `sync`, `quorum`, `potential` or `async`.
        public let kind: String
        /// The bytes of the log that it has not replayed or, for a receiver that only stores the log, not received.
        public let bytesBehind: Int
        /// The age of the replayed log in seconds. 0 after it has replayed all.
        public let secondsBehind: Double
    }

    /// The bytes of the log kept for the slowest slot. Nil without slots.
    public let bytesKeptForSlots: Int?
    /// Nil if the role lacks `pg_read_all_stats`.
    public let standbys: [Standby]?
}

/// Reads the lag, separately from ``ReadDatabaseState``, because some hosted services deny roles the log's position.
struct ReadReplicationState: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        WITH log (position) AS (
            SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END),
        standbys AS (
            SELECT application_name AS name, sync_state AS kind,
                greatest(pg_wal_lsn_diff(position, coalesce(replay_lsn, flush_lsn)), 0)::bigint AS bytes,
                extract(epoch FROM replay_lag)::float8 AS seconds
            FROM pg_stat_replication, log WHERE state IN ('streaming', 'catchup'))
        SELECT (SELECT max(pg_wal_lsn_diff(position, restart_lsn))::bigint FROM pg_replication_slots, log),
            pg_has_role('pg_read_all_stats', 'USAGE'),
            coalesce(array_agg(name), '{}'), coalesce(array_agg(kind), '{}'),
            coalesce(array_agg(coalesce(bytes, 0)), '{}'), coalesce(array_agg(coalesce(seconds, 0)), '{}')
        FROM standbys
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ReplicationState {
        let bytesKept = try row.next(Int64?.self)
        let mayKnow = try row.next(Bool.self)
        let (names, kinds): ([String], [String]) = (try row.next(), try row.next())
        let (bytes, seconds): ([Int64], [Double]) = (try row.next(), try row.next())
        let standbys = zip(zip(names, kinds), zip(bytes, seconds)).map { standby, behind in
            ReplicationState.Standby(
                name: standby.0, kind: standby.1, bytesBehind: Int(behind.0), secondsBehind: behind.1)
        }
        return ReplicationState(bytesKeptForSlots: bytesKept.map { Int($0) }, standbys: mayKnow ? standbys : nil)
    }
}
