public import Postgres

/// Removes expired rows: ended sessions, old tombstones, kept contents of deleted items, older versions, kept keyrings,
/// used challenges, abandoned rotations, ended shares, old security events, old failures and parked outgoing events.
///
/// It works in small slices, each a transaction on one account, so that requests never wait for long. An account that
/// is locked at the moment is left to the next purge.
public struct Purge {
    let database: PostgresClient
    let sessions: SessionPolicy
    let policy: PurgePolicy
    let now: Timestamp

    /// The numbers of removed rows.
    public struct Report: Sendable, Equatable {
        public var sessions = 0
        public var tombstones = 0
        public var contents = 0
        public var keyrings = 0
        /// Used challenges of passkeys.
        public var challenges = 0
        /// Older versions of items.
        public var versions = 0
        public var rotations = 0
        public var events = 0
        public var attempts = 0
        public var shares = 0
        /// Invitations to vaults.
        public var invitations = 0
        /// Outgoing events that were parked.
        public var outgoing = 0
        /// Accounts that were locked. Their rows are left to the next purge.
        public var skippedAccounts = 0

        /// The report of a purge without due rows.
        public static let empty = Report()
    }

    /// - Parameters:
    ///   - database: Has the rights of the server's role.
    ///   - sessions: Decides the end of sessions.
    ///   - policy: The retention of other rows.
    ///   - now: The time from which ages are counted.
    public init(database: PostgresClient, sessions: SessionPolicy, policy: PurgePolicy, now: Timestamp) {
        self.database = database
        self.sessions = sessions
        self.policy = policy
        self.now = now
    }

    /// Purges all due rows, unless another node is purging.
    ///
    /// - Parameter noting: Receives the number of removed rows after each slice.
    /// - Returns: The removed rows. Nil if another node has the lock.
    /// - Throws: A `PostgresError`. Rows removed before it stay removed.
    public func run(noting: @escaping (Int) -> Void = { _ in }) async throws -> Report? {
        guard database.keepsSessions else { return try await runHoldingTransaction(noting) }
        return try await database.withConnection { connection -> Report? in
            guard try await connection.execute(TakePurgeLock()).first == true else { return nil }
            var run = PurgeRun(self, finding: connection, noting: noting)
            let report = try await run.report()
            // The end of the connection would also release it, a moment later.
            _ = try? await connection.execute(ReleasePurgeLock())
            return report
        }
    }

    /// Purges while an otherwise idle transaction holds the lock: behind a pooler a session's lock could stay with
    /// another session. The transaction delays no vacuum and no migration.
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

/// The retention of expired rows and the size of a purge's slices.
public struct PurgePolicy: Sendable, Equatable {
    /// Retention of tombstones after the deletion. A device that is offline for longer must list everything again.
    public var tombstoneRetention: Duration
    /// Retention of entries of the security log.
    public var eventRetention: Duration
    /// Maximum number of rows that one statement removes.
    public var biteSize: Int
    /// Maximum of sealed bytes that one statement removes, to stay within its time limit. A single row may have more.
    public var biteBytes: Int64

    public init(
        tombstoneRetention: Duration = .seconds(90 * 86_400), eventRetention: Duration = .seconds(400 * 86_400),
        biteSize: Int = 500, biteBytes: Int64 = 64 * 1_048_576
    ) {
        self.tombstoneRetention = tombstoneRetention
        self.eventRetention = eventRetention
        self.biteSize = biteSize
        self.biteBytes = biteBytes
    }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        var findings: [String] = []
        if tombstoneRetention < .seconds(86_400) { findings.append("Tombstones must be kept for a day at least.") }
        if eventRetention < .seconds(86_400) { findings.append("Security events must be kept for a day at least.") }
        if !(1...10_000).contains(biteSize) { findings.append("A purge must remove 1 to 10000 rows at a time.") }
        return findings
    }
}
