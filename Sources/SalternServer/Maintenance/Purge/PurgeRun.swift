internal import Postgres

/// One purge: finds due rows on the connection that holds the purge's lock, and removes them in slices.
struct PurgeRun {
    private let purge: Purge
    private let connection: PostgresLease
    private let noting: (Int) -> Void
    /// True for rows of vaults, whose ids then stand in place of those of accounts.
    private let isOfVaults: Bool
    /// The number of removed rows of all kinds.
    private var removedCount = 0
    /// Accounts that were locked.
    private var skipped: Set<AccountID> = []

    /// The maximum wait of a slice for an account's lock. With several accounts it is short, because the others are
    /// locked meanwhile.
    private static let patience = BeginPurgeSlice(milliseconds: 500)
    private static let patienceTogether = BeginPurgeSlice(milliseconds: 5)
    /// The number of accounts in one slice.
    private static let accountsTogether = 16
    /// The number of locked accounts at which the purge stops, because a longer wait would not help.
    private static let skippedLimit = 200

    init(
        _ purge: Purge, finding connection: PostgresLease, isOfVaults: Bool = false, noting: @escaping (Int) -> Void
    ) {
        self.isOfVaults = isOfVaults
        self.purge = purge
        self.connection = connection
        self.noting = noting
    }

    /// - Throws: `CancellationError` between slices.
    private mutating func note(_ bite: Int) throws -> Int {
        try Task.checkCancellation()
        removedCount += bite
        noting(removedCount)
        return bite
    }

    private var policy: PurgePolicy { purge.policy }
    private var now: Timestamp { purge.now }
    private var biteSize: Int64 { Int64(policy.biteSize) }

    /// Purges all due rows.
    mutating func report() async throws -> Purge.Report {
        var report = Purge.Report()
        report.sessions = try await purgeSessions()
        report.contents = try await purgeContents()
        report.keyrings = try await purgeKeyrings()
        report.challenges = try await purgeChallenges()
        report.versions = try await purgeVersions()
        report.tombstones = try await purgeTombstones()
        report.rotations = try await purgeRotations()
        report.events = try await purgeEvents()
        report.attempts = try await purgeAttempts()
        report.shares = try await purgeShares()
        report.outgoing = try await purgeOutgoingEvents(now: now)
        let (count, noting) = (removedCount, noting)
        var vaults = PurgeRun(purge, finding: connection, isOfVaults: true) { noting(count + $0) }
        report.contents += try await vaults.purgeContents()
        report.versions += try await vaults.purgeVersions()
        report.tombstones += try await vaults.purgeTombstones()
        report.invitations = try await vaults.purgeInvitations()
        report.skippedAccounts = skipped.count + vaults.skipped.count
        return report
    }

    /// Removes expired invitations to vaults.
    private mutating func purgeInvitations() async throws -> Int {
        var removed = 0
        while true {
            let due = try await connection.execute(FindExpiredInvitations(now: now, limit: biteSize))
            _ = try await connection.execute(RemoveExpiredInvitations(ids: due, now: now))
            removed += try note(due.count)
            guard due.count == policy.biteSize else { return removed }
        }
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

    private mutating func purgeChallenges() async throws -> Int {
        let now = now
        return try await inBites {
            FindExpiredChallenges(now: now, except: $0, limit: $1)
        } remove: {
            RemoveExpiredChallenges(accountID: $0, now: now, hashes: $1)
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

    /// Removes staged items before their rotation, so that an interrupted purge finds the rest again.
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

    /// Removes counters without recent failures. Those that are being changed at the moment are skipped.
    private mutating func purgeAttempts() async throws -> Int {
        let before = now - AttemptPolicy.retention
        var removed = 0
        while true {
            let due = try await connection.execute(FindOldAttempts(before: before, limit: biteSize))
            // A cluster can skip locked rows only on one node at a time.
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

    // MARK: Slices

    /// Finds and removes due rows until none are left or removable.
    ///
    /// - Parameters:
    ///   - find: Makes the statement that finds due rows, except those of the given accounts.
    ///   - remove: Makes the statement that removes the rows of one account and returns their number.
    private mutating func inBites<Find: Statement, Removal: Statement, ID>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find, remove: (AccountID, [ID]) -> Removal
    ) async throws -> Int where Find.Row == DueRow<ID>, Removal.Row == Int64 {
        let (biteBytes, isOfVaults) = (policy.biteBytes, isOfVaults)
        return try await inBites(find) { run, due in
            let slices = due.flatMap { owner, rows in
                DueRow.slices(of: rows, biteBytes).map { (owner, remove(owner, $0)) }
            }
            return try await run.remove(slices) { transaction, removals in
                guard isOfVaults else {
                    return Self.sum(try await transaction.execute(each: removals).flatMap(\.self))
                }
                let renamed = removals.map { StepInVault(step: $0) }
                return Self.sum(try await transaction.execute(each: renamed).flatMap(\.self))
            }
        }
    }

    /// Finds and removes due rows until none are left or removable.
    ///
    /// - Parameter removeDue: Removes the rows of each account and returns their number.
    private mutating func inBites<Find: Statement, ID>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find,
        removeDue: (inout PurgeRun, [AccountID: [DueRow<ID>]]) async throws -> Int
    ) async throws -> Int where Find.Row == DueRow<ID> {
        var removed = 0
        while true {
            let find = find(Array(skipped), biteSize)
            let due =
                isOfVaults
                ? try await connection.execute(StepInVault(step: find)) : try await connection.execute(find)
            let skippedBefore = skipped.count
            let bite = try await removeDue(&self, Dictionary(grouping: due, by: \.owner))
            removed += try note(bite)
            // No row is removed if another node was faster. The next purge removes the rest.
            guard due.count == policy.biteSize, bite > 0 || skipped.count > skippedBefore, !isGivenUp else {
                return removed
            }
        }
    }

    /// Runs one statement for each account, for several accounts in one transaction, and for each alone if one is
    /// locked. On a cluster each runs alone, because several would need a two-phase commit.
    ///
    /// Locks are sent together with their statements. A round trip for each lock would add a wait, and hold the locks
    /// for longer.
    private mutating func remove<Removal: Statement>(
        _ removals: [(account: AccountID, statement: Removal)],
        by carryingOut: (Transaction, [Removal]) async throws -> Int
    ) async throws -> Int {
        var left = removals.sorted { $0.account.uuid < $1.account.uuid }[...]
        var removed = 0
        while !left.isEmpty {
            let group = left.prefix(connection.isDistributed ? 1 : Self.accountsTogether)
            left.removeFirst(group.count)
            if group.count > 1,
                let count = try await together(
                    with: group.map(\.account), { try await carryingOut($0, group.map(\.statement)) })
            {
                removed += count
                continue
            }
            for (account, statement) in group {
                removed += try await alone(with: account) { try await carryingOut($0, [statement]) }
            }
        }
        return removed
    }

    /// Finds accounts and runs a step for them until none are left, or only locked ones. The accounts may be deleted.
    /// Ends if a step leaves its accounts as they were. The next purge repeats it.
    ///
    /// A step is a transaction on several accounts, or on each alone if one is locked. On a cluster each runs alone:
    /// statements on several shards would need a two-phase commit, and wait for each other's end.
    ///
    /// - Parameters:
    ///   - find: Makes the statement that finds accounts, except the given ones.
    ///   - step: Ends the reason why the accounts were found, and returns the number of removed rows.
    mutating func inGroups<Find: Statement>(
        _ find: (_ except: [AccountID], _ limit: Int64) -> Find, step: (Transaction, [AccountID]) async throws -> Int
    ) async throws -> Int where Find.Row == AccountID {
        var removed = 0
        var before: Set<AccountID> = []
        while true {
            let found = try await connection.execute(find(Array(skipped), biteSize))
            let accounts = Set(found)
            if !accounts.isEmpty, accounts.isSubset(of: before) { return removed }
            before = accounts
            var left = accounts.sorted { $0.uuid < $1.uuid }[...]
            while !left.isEmpty {
                let group = Array(left.prefix(connection.isDistributed ? 1 : Self.accountsTogether))
                left.removeFirst(group.count)
                var bite = group.count > 1 ? try await together(with: group, { try await step($0, group) }) : nil
                if bite == nil {
                    bite = 0
                    for account in group { bite? += try await alone(with: account) { try await step($0, [account]) } }
                }
                removed += try note(bite ?? 0)
            }
            guard found.count == policy.biteSize, !isGivenUp else { return removed }
        }
    }

    /// - Returns: Nil if an account was locked; nothing was removed then.
    private func together(
        with accounts: [AccountID], _ body: (Transaction) async throws -> Int
    ) async throws -> Int? {
        do {
            return try await purge.database.withTransaction { transaction in
                transaction.enqueue(Self.patienceTogether)
                for account in accounts { lock(account, in: transaction) }
                return try await body(transaction)
            }
        } catch let error as PostgresError where Self.isHeld(error) {
            return nil
        }
    }

    /// Locks the row of an account, or of the vault with this id.
    private func lock(_ account: AccountID, in transaction: Transaction) {
        let lock = LockAccount(accountID: account)
        if isOfVaults { transaction.enqueue(StepInVault(step: lock)) } else { transaction.enqueue(lock) }
    }

    private var isGivenUp: Bool { skipped.count >= Self.skippedLimit }

    /// Runs a slice with the account's row locked. Returns 0 if it is locked by another transaction, and skips the
    /// account in the rest of the run.
    private mutating func alone(
        with account: AccountID, _ body: (Transaction) async throws -> Int
    ) async throws -> Int {
        guard !skipped.contains(account), !isGivenUp else { return 0 }
        do {
            let key = isOfVaults ? RequestKey.vault(VaultID(account.uuid)) : .account(account)
            return try await purge.database.withTransaction(key: key) { transaction in
                transaction.enqueue(Self.patience)
                lock(account, in: transaction)
                return try await body(transaction)
            }
        } catch let error as PostgresError where Self.isHeld(error) {
            // The pool of a stopping server throws the same error.
            try Task.checkCancellation()
            skipped.insert(account)
            return 0
        }
    }

    /// Returns true if an error means that another transaction holds a row of the slice.
    private static func isHeld(_ error: PostgresError) -> Bool {
        if case .unavailable = error { return true }
        return error.sqlState == .lockNotAvailable || error.sqlState == .deadlockDetected
    }

    private static func sum(_ counts: [Int64]) -> Int { Int(counts.reduce(0, +)) }
}
