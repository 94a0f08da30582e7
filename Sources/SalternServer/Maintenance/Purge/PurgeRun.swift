internal import Postgres

/// One purge: finds what is due on one connection, which holds the purge's lock, and removes it bite by bite.
struct PurgeRun {
    private let purge: Purge
    private let connection: PostgresLease
    /// Accounts that somebody held when their turn came.
    private var skipped: Set<AccountID> = []

    /// How long a bite waits for an account.
    private static let patience = LimitLockWait(milliseconds: 500)
    /// Where so many accounts are held something is wrong that waiting does not mend.
    private static let skippedLimit = 200

    init(_ purge: Purge, finding connection: PostgresLease) {
        self.purge = purge
        self.connection = connection
    }

    private var policy: PurgePolicy { purge.policy }
    private var now: Timestamp { purge.now }
    private var biteSize: Int64 { Int64(policy.biteSize) }

    /// Purges everything that is due.
    mutating func report() async throws -> Purge.Report {
        var report = Purge.Report()
        report.sessions = try await purgeSessions()
        report.contents = try await purgeContents()
        report.tombstones = try await purgeTombstones()
        report.rotations = try await purgeRotations()
        report.events = try await purgeEvents()
        report.attempts = try await purgeAttempts()
        report.shares = try await purgeShares()
        report.skippedAccounts = skipped.count
        return report
    }

    private mutating func purgeSessions() async throws -> Int {
        let now = now
        let idleSince = now - purge.sessions.idleTimeout
        var removed = 0
        var last: FindEndedSessions.Row?
        while true {
            let slice = try await connection.execute(
                FindEndedSessions(after: last, now: now, idleSince: idleSince, limit: biteSize))
            for account in Set(slice.lazy.filter(\.hasEnded).map(\.accountID)) {
                removed += try await alone(with: account) { transaction in
                    let removal = RemoveSessions(accountID: account, now: now, idleSince: idleSince)
                    return try await transaction.execute(NoteEnds(removal: removal), removal).1.first?.count ?? 0
                }
            }
            guard slice.count == policy.biteSize, !isGivenUp else { return removed }
            last = slice.last
        }
    }

    private mutating func purgeContents() async throws -> Int {
        let now = now
        return try await inBites {
            FindExpiredContents(now: now, except: $0, limit: $1)
        } remove: { transaction, account, due in
            Self.sum(
                try await transaction.execute(
                    RemoveContents(accountID: account, now: now, itemIDs: due)))
        }
    }

    private mutating func purgeTombstones() async throws -> Int {
        let before = now - policy.tombstoneRetention
        return try await inBites {
            FindOldTombstones(before: before, except: $0, limit: $1)
        } remove: { transaction, account, due in
            Self.sum(
                try await transaction.execute(
                    RemoveTombstones(accountID: account, before: before, itemIDs: due)))
        }
    }

    private mutating func purgeEvents() async throws -> Int {
        let before = now - policy.eventRetention
        return try await inBites {
            FindOldEvents(before: before, except: $0, limit: $1)
        } remove: { transaction, account, due in
            Self.sum(
                try await transaction.execute(
                    RemoveEvents(accountID: account, before: before, ids: due)))
        }
    }

    private mutating func purgeShares() async throws -> Int {
        let now = now
        return try await inBites {
            FindEndedShares(now: now, except: $0, limit: $1)
        } remove: { transaction, owner, due in
            let gone = try await transaction.execute(RemoveEndedShares(ids: due, now: now))
            _ = try await transaction.execute(RemoveAccountShares(accountID: owner, ids: gone))
            return gone.count
        }
    }

    /// What is staged goes first, so that a purge that is interrupted finds the rest again.
    private mutating func purgeRotations() async throws -> Int {
        var removed = 0
        while true {
            let due = try await connection.execute(
                FindExpiredRotations(now: now, except: Array(skipped), limit: biteSize))
            for rotation in due {
                while try await alone(
                    with: rotation.owner,
                    {
                        Self.sum(
                            try await $0.execute(
                                RemoveStaged(accountID: rotation.owner, rotationID: rotation.id)))
                    }) > 0
                {}
                removed += try await alone(with: rotation.owner) { transaction in
                    _ = try await transaction.execute(
                        RemoveRotation(accountID: rotation.owner, id: rotation.id))
                    return 1
                }
            }
            guard due.count == policy.biteSize, !isGivenUp else { return removed }
        }
    }

    /// Failures that nobody added to. Those that somebody is adding to at this moment are skipped.
    private func purgeAttempts() async throws -> Int {
        let before = now - AttemptPolicy.retention
        var removed = 0
        while true {
            let due = try await connection.execute(FindOldAttempts(before: before, limit: biteSize))
            // A cluster skips what is locked on one node at a time only.
            let slices = connection.isDistributed ? due.map { [$0] } : [due]
            var bite = 0
            for subjects in slices {
                bite += Self.sum(
                    try await connection.execute(RemoveOldAttempts(subjects: subjects, before: before)))
            }
            removed += bite
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    // MARK: Bites

    /// Finds what is due and removes it, until nothing is left or nothing can be removed.
    /// - Parameters:
    ///   - find: Makes the statement that finds some of what is due, but for these accounts.
    ///   - remove: Removes what was found of one account, and returns how many rows that were.
    private mutating func inBites<Find: Statement, ID>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find,
        remove: (Transaction, AccountID, [ID]) async throws -> Int
    ) async throws -> Int where Find.Row == DueRow<ID> {
        var removed = 0
        while true {
            let due = try await connection.execute(find(Array(skipped), biteSize))
            let skippedBefore = skipped.count
            var bite = 0
            for (account, rows) in Dictionary(grouping: due, by: \.owner) {
                bite += try await alone(with: account) { try await remove($0, account, rows.map(\.id)) }
            }
            removed += bite
            // Nothing was removed when somebody was faster with all of it; the next run sees to the rest.
            guard due.count == policy.biteSize, bite > 0 || skipped.count > skippedBefore, !isGivenUp else {
                return removed
            }
        }
    }

    private var isGivenUp: Bool { skipped.count >= Self.skippedLimit }

    /// Runs a bite with the account's row locked; 0 when somebody holds it, and from then on in this run.
    private mutating func alone(
        with account: AccountID, _ body: (Transaction) async throws -> Int
    ) async throws -> Int {
        guard !skipped.contains(account), !isGivenUp else { return 0 }
        do {
            return try await purge.database.withTransaction(key: .account(account)) { transaction in
                _ = try await transaction.execute(Self.patience, LockAccount(accountID: account))
                return try await body(transaction)
            }
        } catch let error as PostgresError where Self.isHeld(error) {
            skipped.insert(account)
            return 0
        }
    }

    /// Whether an error says that somebody else holds what a bite needs.
    private static func isHeld(_ error: PostgresError) -> Bool {
        if case .unavailable = error { return true }
        return error.sqlState == .lockNotAvailable || error.sqlState == .deadlockDetected
    }

    private static func sum(_ counts: [Int64]) -> Int { Int(counts.first ?? 0) }
}
