public import Postgres

/// What metrics tell of the database itself.
public struct DatabaseState: Sendable {
    /// The newest migration that was applied.
    public let schemaVersion: Int
    /// Standbys and others that follow the server's log.
    public let followers: Int

    /// Asks for it.
    /// - Returns: Nil when the database does not say so in time.
    public static func read(_ database: PostgresClient, within limit: Duration) async -> DatabaseState? {
        await withTaskGroup(of: DatabaseState?.self) { group in
            group.addTask { try? await database.execute(ReadDatabaseState()).first }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }
}

/// Everybody may count the followers of a server; more of them is only told to those in `pg_monitor`.
struct ReadDatabaseState: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT (SELECT coalesce(max(version), 0) FROM saltern.schema_migrations),
            (SELECT count(*) FROM pg_stat_get_wal_senders())
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> DatabaseState {
        DatabaseState(schemaVersion: Int(try row.next(Int32.self)), followers: Int(try row.next(Int64.self)))
    }
}
