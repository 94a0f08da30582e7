internal import Postgres

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
