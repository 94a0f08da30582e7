internal import Postgres

/// One purge: finds what is due on one connection, which holds the purge's lock, and removes it bite by bite.
struct PurgeRun {
    private let purge: Purge
    private let connection: PostgresLease
    private let noting: (Int) -> Void
    /// Rows of all kinds.
    private var removedCount = 0
    /// Accounts that somebody held when their turn came.
    private var skipped: Set<AccountID> = []

    /// How long a bite waits for an account, and one of several accounts for each: it holds the others meanwhile.
    private static let patience = BeginPurgeSlice(milliseconds: 500)
    private static let patienceTogether = BeginPurgeSlice(milliseconds: 5)
    /// How many accounts have a bite together.
    private static let accountsTogether = 16
    /// Where so many accounts are held something is wrong that waiting does not mend.
    private static let skippedLimit = 200

    init(_ purge: Purge, finding connection: PostgresLease, noting: @escaping (Int) -> Void) {
        self.purge = purge
        self.connection = connection
        self.noting = noting
    }

    /// - Throws: `CancellationError`, between bites.
    private mutating func note(_ bite: Int) throws -> Int {
        try Task.checkCancellation()
        removedCount += bite
        noting(removedCount)
        return bite
    }

    private var policy: PurgePolicy { purge.policy }
    private var now: Timestamp { purge.now }
    private var biteSize: Int64 { Int64(policy.biteSize) }

    /// Purges everything that is due.
    mutating func report() async throws -> Purge.Report {
        var report = Purge.Report()
        report.sessions = try await purgeSessions()
        report.contents = try await purgeContents()
        report.keyrings = try await purgeKeyrings()
        report.versions = try await purgeVersions()
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
            let removals = Set(slice.lazy.filter(\.hasEnded).map(\.accountID)).map {
                ($0, RemoveSessions(accountID: $0, now: now, idleSince: idleSince))
            }
            let bite = try await remove(removals) { transaction, removals in
                for removal in removals { transaction.enqueue(RecordSessionEnds(removal: removal)) }
                return try await transaction.execute(each: removals).joined().reduce(0) { $0 + $1.count }
            }
            removed += try note(bite)
            guard slice.count == policy.biteSize, !isGivenUp else { return removed }
            last = slice.last
        }
    }

    private mutating func purgeContents() async throws -> Int {
        let now = now
        return try await inBites {
            FindExpiredContents(now: now, except: $0, limit: $1)
        } remove: {
            RemoveContents(accountID: $0, now: now, itemIDs: $1)
        }
    }

    private mutating func purgeKeyrings() async throws -> Int {
        let now = now
        return try await inBites {
            FindExpiredKeyrings(now: now, except: $0, limit: $1)
        } remove: {
            RemoveExpiredKeyrings(accountID: $0, now: now, ids: $1)
        }
    }

    private mutating func purgeVersions() async throws -> Int {
        let now = now
        return try await inBites {
            FindExpiredVersions(now: now, except: $0, limit: $1)
        } remove: {
            RemoveVersions(accountID: $0, now: now, keys: $1)
        }
    }

    private mutating func purgeTombstones() async throws -> Int {
        let before = now - policy.tombstoneRetention
        return try await inBites {
            FindOldTombstones(before: before, except: $0, limit: $1)
        } remove: {
            RemoveTombstones(accountID: $0, before: before, itemIDs: $1)
        }
    }

    private mutating func purgeEvents() async throws -> Int {
        let before = now - policy.eventRetention
        return try await inBites {
            FindOldEvents(before: before, except: $0, limit: $1)
        } remove: {
            RemoveEvents(accountID: $0, before: before, ids: $1)
        }
    }

    private mutating func purgeShares() async throws -> Int {
        let now = now
        let biteBytes = policy.biteBytes
        return try await inBites {
            FindEndedShares(now: now, except: $0, limit: $1)
        } removeDue: { run, due in
            var removed = 0
            for (owner, rows) in due {
                for slice in DueRow.slices(of: rows, biteBytes) {
                    removed += try await run.alone(with: owner) {
                        try await AccountShares.remove(slice, of: owner, at: now, in: $0)
                    }
                }
            }
            return removed
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
    private mutating func purgeAttempts() async throws -> Int {
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
            removed += try note(bite)
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    // MARK: Bites

    /// Finds what is due and removes it, until nothing is left or nothing can be removed.
    /// - Parameters:
    ///   - find: Makes the statement that finds some of what is due, but for these accounts.
    ///   - remove: Makes the statement that removes what was found of one account, and returns how many rows that were.
    private mutating func inBites<Find: Statement, Removal: Statement, ID>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find, remove: (AccountID, [ID]) -> Removal
    ) async throws -> Int where Find.Row == DueRow<ID>, Removal.Row == Int64 {
        let biteBytes = policy.biteBytes
        return try await inBites(find) { run, due in
            let slices = due.flatMap { owner, rows in
                DueRow.slices(of: rows, biteBytes).map { (owner, remove(owner, $0)) }
            }
            return try await run.remove(slices) { transaction, removals in
                Self.sum(try await transaction.execute(each: removals).flatMap(\.self))
            }
        }
    }

    /// - Parameter removeDue: Removes what was found of each account, and returns how many rows that were.
    private mutating func inBites<Find: Statement, ID>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find,
        removeDue: (inout PurgeRun, [AccountID: [DueRow<ID>]]) async throws -> Int
    ) async throws -> Int where Find.Row == DueRow<ID> {
        var removed = 0
        while true {
            let due = try await connection.execute(find(Array(skipped), biteSize))
            let skippedBefore = skipped.count
            let bite = try await removeDue(&self, Dictionary(grouping: due, by: \.owner))
            removed += try note(bite)
            // Nothing was removed when somebody was faster with all of it; the next run sees to the rest.
            guard due.count == policy.biteSize, bite > 0 || skipped.count > skippedBefore, !isGivenUp else {
                return removed
            }
        }
    }

    /// Carries out what names one account each, for several accounts in one transaction, and for each alone where
    /// somebody holds one of them. A cluster would have a commit in two phases for several.
    ///
    /// The locks are sent with what they are for: a round trip with each would be a wait each, and hold them for longer.
    private mutating func remove<Removal: Statement>(
        _ removals: [(account: AccountID, statement: Removal)],
        by carryingOut: (Transaction, [Removal]) async throws -> Int
    ) async throws -> Int {
        var left = removals.sorted { $0.account.uuid < $1.account.uuid }[...]
        var removed = 0
        while !left.isEmpty {
            let group = left.prefix(connection.isDistributed ? 1 : Self.accountsTogether)
            left.removeFirst(group.count)
            if group.count > 1, let count = try await removeTogether(Array(group), by: carryingOut) {
                removed += count
                continue
            }
            for (account, statement) in group {
                removed += try await alone(with: account) { try await carryingOut($0, [statement]) }
            }
        }
        return removed
    }

    /// - Returns: Nil when somebody held one of the accounts; then nothing was removed.
    private func removeTogether<Removal: Statement>(
        _ group: [(account: AccountID, statement: Removal)],
        by carryingOut: (Transaction, [Removal]) async throws -> Int
    ) async throws -> Int? {
        do {
            return try await purge.database.withTransaction { transaction in
                transaction.enqueue(Self.patienceTogether)
                for (account, _) in group { transaction.enqueue(LockAccount(accountID: account)) }
                return try await carryingOut(transaction, group.map(\.statement))
            }
        } catch let error as PostgresError where Self.isHeld(error) {
            return nil
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
                transaction.enqueue(Self.patience)
                transaction.enqueue(LockAccount(accountID: account))
                return try await body(transaction)
            }
        } catch let error as PostgresError where Self.isHeld(error) {
            // The pool of a server that stops says the same of everything.
            try Task.checkCancellation()
            skipped.insert(account)
            return 0
        }
    }

    /// Whether an error says that somebody else holds what a bite needs.
    private static func isHeld(_ error: PostgresError) -> Bool {
        if case .unavailable = error { return true }
        return error.sqlState == .lockNotAvailable || error.sqlState == .deadlockDetected
    }

    private static func sum(_ counts: [Int64]) -> Int { Int(counts.reduce(0, +)) }
}
