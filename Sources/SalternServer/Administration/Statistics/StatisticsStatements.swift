internal import Postgres

/// Counts the accounts in one pass.
struct SumUpAccounts: Statement {
    let now: Timestamp

    private var weekAgo: Timestamp { now - .seconds(7 * 86_400) }
    private var monthAgo: Timestamp { now - .seconds(30 * 86_400) }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*), count(a.locked_at), count(*) FILTER (WHERE a.created_at > \(\.weekAgo)),
            count(*) FILTER (WHERE a.created_at > \(\.monthAgo)), coalesce(sum(a.item_count), 0)::bigint,
            coalesce(sum(a.item_bytes), 0)::bigint
        FROM saltern.accounts a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Statistics.Accounts {
        try row.read(Statistics.Accounts.init)
    }
}

/// Counts the live sessions.
struct CountLiveSessions: Statement {
    typealias Row = Int64

    let now: Timestamp
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM saltern.sessions s
        WHERE \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        """
}

/// Counts the rows that need little time.
struct CountTheRest: Statement {
    let now: Timestamp

    struct Row: Sendable {
        let secondFactors: Int64
        let recoveries: Int64
        let shares: Int64
        let openInvites: Int64
        let databaseBytes: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT (SELECT count(*) FROM saltern.second_factors f WHERE f.confirmed_at IS NOT NULL),
            (SELECT count(*) FROM saltern.recoveries),
            (SELECT count(*) FROM saltern.shares h WHERE h.expires_at IS NULL OR h.expires_at > \(\.now)),
            (
                SELECT count(*) FROM saltern.invites i
                WHERE i.used_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > \(\.now)
            ),
            pg_database_size(current_database())
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
