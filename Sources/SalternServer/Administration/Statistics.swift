public import Postgres

/// Totals of the whole database.
public struct Statistics: Sendable {
    public let accounts: Accounts
    public let liveSessions: Int64
    public let secondFactors: Int64
    public let recoveries: Int64
    public let shares: Int64
    public let openInvites: Int64
    /// Shared vaults, their items and sealed bytes.
    public let vaults: Int64
    public let vaultItems: Int64
    public let vaultBytes: Int64
    /// Size of tables and indexes on disk.
    public let databaseBytes: Int64

    /// The part that one statement counts.
    public enum Part: Int, CaseIterable, Sendable {
        case accounts, sessions, rest
    }

    public struct Accounts: Sendable {
        public let total: Int64
        public let locked: Int64
        public let newInWeek: Int64
        public let newInMonth: Int64
        /// Totals over all accounts, of items that are not deleted.
        public let items: Int64
        public let bytes: Int64
    }

    /// Counts all rows in one snapshot. It scans accounts, sessions and shares once.
    ///
    /// - Parameters:
    ///   - database: Connects as the schema's owner, with a sufficient time limit.
    ///   - sessions: The server's policy, which decides the live sessions.
    ///   - now: The time from which ages are counted.
    ///   - begin: Receives the next part. With millions of rows each part takes seconds.
    public static func gather(
        from database: PostgresClient, sessions: SessionPolicy, now: Timestamp, begin: (Part) -> Void = { _ in }
    ) async throws -> Statistics {
        try await database.withTransaction(isolation: .repeatableRead) { transaction in
            begin(.accounts)
            let accounts = try await transaction.execute(SumUpAccounts(now: now))
            begin(.sessions)
            let live = try await transaction.execute(
                CountLiveSessions(now: now, idleSince: now - sessions.idleTimeout))
            begin(.rest)
            let rest = try await transaction.execute(CountTheRest(now: now))
            guard let accounts = accounts.first, let live = live.first, let rest = rest.first else {
                throw StatisticsUnavailable()
            }
            return Statistics(
                accounts: accounts, liveSessions: live, secondFactors: rest.secondFactors,
                recoveries: rest.recoveries, shares: rest.shares, openInvites: rest.openInvites,
                vaults: rest.vaults, vaultItems: rest.vaultItems, vaultBytes: rest.vaultBytes,
                databaseBytes: rest.databaseBytes)
        }
    }
}

/// The error of a count without a row.
private struct StatisticsUnavailable: Error, CustomStringConvertible {
    var description: String { "the database returned no counts" }
}

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
        let vaults: Int64
        let vaultItems: Int64
        let vaultBytes: Int64
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
            (SELECT count(*) FROM saltern.vaults),
            (SELECT coalesce(sum(v.item_count), 0)::bigint FROM saltern.vaults v),
            (SELECT coalesce(sum(v.item_bytes), 0)::bigint FROM saltern.vaults v),
            pg_database_size(current_database())
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The statements of statistics.
extension StatementList {
    static var statistics: [any Statement.Type] { [SumUpAccounts.self, CountLiveSessions.self, CountTheRest.self] }
}
