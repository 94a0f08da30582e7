public import Postgres

/// Totals of the whole database.
public struct Statistics: Sendable {
    public let accounts: Accounts
    public let liveSessions: Int64
    public let secondFactors: Int64
    public let recoveries: Int64
    public let shares: Int64
    public let openInvites: Int64
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
                databaseBytes: rest.databaseBytes)
        }
    }
}

/// The error of a count without a row.
private struct StatisticsUnavailable: Error, CustomStringConvertible {
    var description: String { "the database did not answer with its counts" }
}
