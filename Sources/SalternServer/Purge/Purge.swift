public import Postgres

/// Removes what nobody needs any more: ended sessions, old tombstones, contents of deleted items that expired, abandoned
/// rotations, shares that have ended, old security events and forgotten failures.
///
/// Small bites, each a transaction of its own on one account, so that no request waits for long.
public struct Purge {
    private let database: PostgresClient
    private let sessions: SessionPolicy
    let policy: PurgePolicy
    let now: Timestamp

    /// How many rows were removed.
    public struct Report: Sendable, Equatable {
        public var sessions = 0
        public var tombstones = 0
        public var contents = 0
        public var rotations = 0
        public var events = 0
        public var attempts = 0
        public var shares = 0
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
    /// - Returns: What was removed; nil when another node has the lock.
    /// - Throws: A `PostgresError`. What was removed before stays removed.
    public func run() async throws -> Report? {
        try await database.withConnection { connection -> Report? in
            guard try await connection.execute(TakePurgeLock()).first == true else { return nil }
            var report = Report()
            report.sessions = try await purgeSessions(connection)
            report.contents = try await purgeContents(connection)
            report.tombstones = try await purgeTombstones(connection)
            report.rotations = try await purgeRotations(connection)
            report.events = try await purgeEvents(connection)
            report.attempts = try await purgeAttempts(connection)
            report.shares = try await purgeShares(connection)
            return report
        }
    }

    private func purgeSessions(_ connection: PostgresLease) async throws(PostgresError) -> Int {
        let idleSince = now - sessions.idleTimeout
        var removed = 0
        var last: FindEndedSessions.Row?
        while true {
            let slice = try await connection.execute(
                FindEndedSessions(after: last, now: now, idleSince: idleSince, limit: Int64(policy.biteSize)))
            for account in Set(slice.lazy.filter(\.hasEnded).map(\.accountID)) {
                removed += Self.sum(
                    try await connection.execute(RemoveSessions(accountID: account, now: now, idleSince: idleSince)))
            }
            guard slice.count == policy.biteSize else { return removed }
            last = slice.last
        }
    }

    private func purgeContents(_ connection: PostgresLease) async throws(PostgresError) -> Int {
        var removed = 0
        while true {
            let due = try await connection.execute(FindExpiredContents(now: now, limit: Int64(policy.biteSize)))
            var bite = 0
            for (account, items) in Self.byAccount(due) {
                let (_, counts) = try await connection.execute(
                    LockAccount(accountID: account), RemoveContents(accountID: account, now: now, itemIDs: items))
                bite += Self.sum(counts)
            }
            removed += bite
            // Nothing was removed when somebody was faster with all of it; the next run sees to the rest.
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    private func purgeTombstones(_ connection: PostgresLease) async throws(PostgresError) -> Int {
        let before = now - policy.tombstoneRetention
        var removed = 0
        while true {
            let due = try await connection.execute(FindOldTombstones(before: before, limit: Int64(policy.biteSize)))
            var bite = 0
            for (account, items) in Self.byAccount(due) {
                let (_, counts) = try await connection.execute(
                    LockAccount(accountID: account),
                    RemoveTombstones(accountID: account, before: before, itemIDs: items)
                )
                bite += Self.sum(counts)
            }
            removed += bite
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    /// What is staged goes first, so that a purge that is interrupted finds the rest again.
    private func purgeRotations(_ connection: PostgresLease) async throws -> Int {
        var removed = 0
        while true {
            let due = try await connection.execute(FindExpiredRotations(now: now, limit: Int64(policy.biteSize)))
            for rotation in due {
                let lock = LockAccount(accountID: rotation.accountID)
                try await StagedItems.remove(of: rotation.id, rotation.accountID) {
                    try await connection.execute(lock, $0).1
                }
                _ = try await connection.execute(
                    lock, RemoveRotation(accountID: rotation.accountID, id: rotation.id))
            }
            removed += due.count
            guard due.count == policy.biteSize else { return removed }
        }
    }

    private func purgeShares(_ connection: PostgresLease) async throws -> Int {
        var removed = 0
        while true {
            let due = try await connection.execute(FindEndedShares(now: now, limit: Int64(policy.biteSize)))
            var bite = 0
            for (owner, shares) in Dictionary(grouping: due, by: { $0.owner ?? .nobody }) {
                bite += try await database.withTransaction { transaction in
                    _ = try await transaction.execute(LockAccount(accountID: owner))
                    let gone = try await transaction.execute(RemoveEndedShares(ids: shares.map(\.id), now: now))
                    _ = try await transaction.execute(RemoveAccountShares(accountID: owner, ids: gone))
                    return gone.count
                }
            }
            removed += bite
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    private static func byAccount(_ rows: [OwnedRow]) -> [AccountID: [ItemID]] {
        Dictionary(grouping: rows, by: \.accountID).mapValues { $0.map(\.itemID) }
    }

    static func sum(_ counts: [Int64]) -> Int { Int(counts.first ?? 0) }
}
