internal import Postgres

/// How far behind those are that follow PostgreSQL's log.
public struct ReplicationState: Sendable {
    /// One that follows, as PostgreSQL sees it.
    public struct Standby: Sendable {
        /// Its `application_name`; several may have the same.
        public let name: String
        /// Whether commits wait for it: `sync`, `quorum`, `potential` or `async`.
        public let kind: String
        /// How much of the log it has not replayed; of one that only keeps the log, what it has not got.
        public let bytesBehind: Int
        /// How old is what it replays; 0 when it has replayed all.
        public let secondsBehind: Double
    }

    /// The log that is kept for the slot that is farthest behind; nil without slots.
    public let bytesKeptForSlots: Int?
    /// Nil when the role may not know: it has not `pg_read_all_stats`.
    public let standbys: [Standby]?
}

/// Apart from ``ReadDatabaseState``: not every service that runs PostgreSQL lets its roles ask for the log's position.
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
