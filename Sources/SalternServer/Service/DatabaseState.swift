public import Postgres

/// What metrics tell of the database itself.
public struct DatabaseState: Sendable {
    /// The newest migration that was applied.
    public let schemaVersion: Int
    /// Whether the server that answers is a standby.
    public let isInRecovery: Bool
    /// Standbys and others that follow the server's log.
    public let followers: Int
    /// How many standbys a commit waits for.
    public let awaitedStandbys: Int
    /// Nil when the server does not let the role ask.
    public internal(set) var replication: ReplicationState?

    /// Asks for it.
    /// - Returns: Nil when the database does not say so in time.
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

/// Everybody may count the followers of a server; more of them is only told to those in `pg_read_all_stats`.
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

    /// How many standbys a commit waits for.
    /// - Parameter names: `synchronous_standby_names`: a list, or `FIRST 2 (…)`, `2 (…)` or `ANY 2 (…)`.
    static func awaited(in names: String) -> Int {
        if names.allSatisfy(\.isWhitespace) { return 0 }
        let beforeList = names.prefix { $0 != "(" && $0 != "\"" && $0 != "," }
        guard names.dropFirst(beforeList.count).first == "(" else { return 1 }
        return beforeList.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 1
    }
}
