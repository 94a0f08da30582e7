public import Postgres

/// Removes what nobody needs any more: ended sessions, old tombstones, contents of deleted items, older versions and kept
/// keyrings that expired, abandoned rotations, shares that have ended, old security events and forgotten failures.
///
/// Small bites, each a transaction of its own on one account, so that no request waits for long. An account that somebody
/// holds is left to the next purge.
public struct Purge {
    let database: PostgresClient
    let sessions: SessionPolicy
    let policy: PurgePolicy
    let now: Timestamp

    /// How many rows were removed.
    public struct Report: Sendable, Equatable {
        public var sessions = 0
        public var tombstones = 0
        public var contents = 0
        public var keyrings = 0
        /// Older versions of items.
        public var versions = 0
        public var rotations = 0
        public var events = 0
        public var attempts = 0
        public var shares = 0
        /// Accounts that somebody held: what is due there is left to the next purge.
        public var skippedAccounts = 0

        /// Of a purge that found nothing to do.
        public static let empty = Report()
    }

    /// - Parameters:
    ///   - database: With the rights of the server's role.
    ///   - sessions: When sessions end.
    ///   - policy: How long other things are kept.
    ///   - now: The time that ages are taken from.
    public init(database: PostgresClient, sessions: SessionPolicy, policy: PurgePolicy, now: Timestamp) {
        self.database = database
        self.sessions = sessions
        self.policy = policy
        self.now = now
    }

    /// Purges everything that is due, unless another node is at it.
    /// - Parameter noting: Told how many rows were removed so far, after each bite.
    /// - Returns: What was removed; nil when another node has the lock.
    /// - Throws: A `PostgresError`. What was removed before stays removed.
    public func run(noting: @escaping (Int) -> Void = { _ in }) async throws -> Report? {
        guard database.keepsSessions else { return try await runHoldingTransaction(noting) }
        return try await database.withConnection { connection -> Report? in
            guard try await connection.execute(TakePurgeLock()).first == true else { return nil }
            var run = PurgeRun(self, finding: connection, noting: noting)
            let report = try await run.report()
            // The end of the connection would do it too, a moment later.
            _ = try? await connection.execute(ReleasePurgeLock())
            return report
        }
    }

    /// A session's lock would stay with whichever session has taken it, so a transaction of its own has it, which does
    /// nothing else: it keeps no vacuum and no migration waiting.
    private func runHoldingTransaction(_ noting: @escaping (Int) -> Void) async throws -> Report? {
        try await database.withTransaction { holder -> Report? in
            guard try await holder.execute(HoldPurgeLock()).first == true else { return nil }
            return try await database.withConnection { connection in
                var run = PurgeRun(self, finding: connection, noting: noting)
                return try await run.report()
            }
        }
    }
}
