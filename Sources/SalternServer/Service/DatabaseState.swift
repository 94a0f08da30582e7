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
