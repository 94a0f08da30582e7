internal import HTTPCore
internal import Postgres
internal import VaultLog

/// The log of a vault whose row is locked, and changes of it.
struct StoredLog {
    let vaultID: VaultID
    private(set) var log: MembershipLog
    /// The entries of the log, in order.
    private(set) var entries: [Entry]
    /// The time at which the vault's recovery began, if the database was restored since then.
    private let recoveryBegan: Timestamp?
    private let transaction: Transaction

    /// Reads the log.
    init(of vaultID: VaultID, in transaction: Transaction) async throws {
        let (recoveries, entries) = try await transaction.execute(
            FindVaultRecovery(vaultID: vaultID), FindEntries(vaultID: vaultID))
        self.vaultID = vaultID
        self.transaction = transaction
        recoveryBegan = recoveries.first ?? nil
        do {
            self.entries = try entries.map { try Entry($0) }
            log = try MembershipLog(self.entries, areVerified: true)
        } catch {
            // Only valid entries are stored.
            throw Problem.internalError
        }
    }

    /// True if the entry stands in the log: the request repeats one whose reply was lost.
    func contains(_ entry: Entry) -> Bool { log.hash(at: entry.number) == entry.hash }

    /// Returns true for the seat of the vault's owner by the log.
    func isOwned(by seat: VaultSeat) -> Bool { MemberID(log.owner.bytes) == seat.memberID }

    /// Returns true while members put entries back.
    func isRecovering(at now: Timestamp) -> Bool { VaultRecovery.end(began: recoveryBegan, now: now) != nil }

    /// Appends an entry and stores its effects.
    ///
    /// - Parameters:
    ///   - holder: The account of a new member.
    ///   - now: The time of the request.
    /// - Returns: The vault's revision.
    /// - Throws: ``VaultProblem``, or a `PostgresError`.
    mutating func append(
        _ entry: Entry, _ additions: EntryAdditions = .none, holder: AccountID? = nil, now: Timestamp
    ) async throws -> Int64 {
        guard continues(entry) else { throw try await moved(since: entry) }
        if isRecovering(at: now) { throw VaultProblem.recovering }
        try VaultTime.check(entry, at: now)
        try EntryRates.check(entry, after: entries, isOwners: log.owner == entry.author, at: now)
        let before = log
        do throws(EntryRejection) { try log.append(entry) } catch { throw VaultProblem.refused(error) }
        entries.append(entry)
        try additions.keys.check(since: before, log)
        try await store(entry, additions.keys, holder, since: before)
        if case .seal(let seal) = entry.payload {
            guard let list = additions.list else { throw VaultProblem.invalidList }
            try await SealLists(vaultID: vaultID, transaction: transaction).store(list, of: seal, entry.number)
        } else if additions.list != nil {
            throw VaultProblem.invalidList
        }
        return try await moveHead(since: before)
    }

    /// Appends entries that a restored database lacks, and skips those that stand in the log.
    ///
    /// The keys of their generations, their lists and the accounts of their joins follow by other requests.
    ///
    /// - Returns: The vault's revision. Nil if all of the entries stand in the log.
    mutating func putBack(_ missing: [Entry], now: Timestamp) async throws -> Int64? {
        guard isRecovering(at: now) else { throw VaultProblem.notRecovering }
        let start = log
        for entry in missing where !contains(entry) {
            guard continues(entry) else { throw try await moved(since: entry) }
            try VaultTime.checkPast(entry, at: now)
            let before = log
            do throws(EntryRejection) { try log.append(entry) } catch { throw VaultProblem.refused(error) }
            entries.append(entry)
            try await store(entry, nil, nil, since: before)
        }
        return log.head == start.head ? nil : try await moveHead(since: start)
    }

    private func continues(_ entry: Entry) -> Bool {
        entry.number.value == log.head.number.value + 1 && entry.previous == log.head.hash
    }

    /// Returns the error for an entry that does not continue the log, with the entries that its author lacks.
    private func moved(since entry: Entry) async throws -> VaultProblem { moved(since: entry.number.value - 1) }

    /// Returns the error for a log that ends elsewhere, with the entries above a number.
    func moved(since number: UInt64) -> VaultProblem {
        let later = entries.drop { $0.number.value <= number }.prefix(128)
        return .membershipMoved(head: Int64(log.head.number.value), entries: later.map(\.bytes))
    }

    private func moveHead(since before: MembershipLog) async throws -> Int64 {
        let head = log.head
        let isNew = log.generations.count > before.generations.count
        let start = entries.last { $0.payload.beginsGeneration }?.number.value ?? 1
        guard
            let revision = try await transaction.execute(
                MoveHead(
                    vaultID: vaultID, number: Int64(head.number.value), hash: head.hash.bytes,
                    keyID: log.currentGeneration.keyID.number, generationNumber: isNew ? Int64(start) : nil,
                    isRotationDue: log.isRotationDue)
            ).first
        else { throw Problem.notFound }
        return revision
    }

    private func store(
        _ entry: Entry, _ keys: NewKeys?, _ holder: AccountID?, since before: MembershipLog
    ) async throws {
        transaction.enqueue(
            InsertEntry(
                vaultID: vaultID, number: Int64(entry.number.value), hash: entry.hash.bytes, entry: entry.bytes))
        for member in log.members.values {
            let earlier = before.members[member.id]
            guard earlier == nil || earlier?.role != member.role || earlier?.keys != member.keys else { continue }
            transaction.enqueue(
                PutMember(
                    vaultID: vaultID, memberID: MemberID(member.id.bytes), holder: earlier == nil ? holder : nil,
                    role: member.role.map { Int16($0.rawValue) } ?? VaultRole.ended.rawValue,
                    since: Int64(entry.number.value)))
        }
        if log.generations.count > before.generations.count {
            let generation = Int64(log.currentGeneration.number.value)
            if let keys {
                transaction.enqueue(
                    InsertBoxes(
                        vaultID: vaultID, generation: generation, members: keys.boxes.map(\.member),
                        boxes: keys.boxes.map(\.box)))
                transaction.enqueue(
                    InsertPreviousKeys(vaultID: vaultID, generations: [generation], keys: [keys.previousKey]))
            }
            transaction.enqueue(
                RemoveOldBoxes(
                    vaultID: vaultID, generation: generation,
                    members: log.presentMembers.map { MemberID($0.id.bytes) }))
        } else if before.presentMembers.count > log.presentMembers.count {
            transaction.enqueue(RemoveBox(vaultID: vaultID, memberID: MemberID(entry.author.bytes)))
        }
        let closed = log.invitations.values.filter { invitation in
            invitation.isClosed && !(before.invitations[invitation.terms.id]?.isClosed ?? true)
        }
        if !closed.isEmpty {
            transaction.enqueue(RemoveInvitations(ids: closed.map { InvitationID($0.terms.id.bytes) }))
        }
    }
}

/// The parts of a request that accompany an entry.
struct EntryAdditions: Sendable {
    /// The keys of a new generation.
    var keys: NewKeys?
    /// The list of a seal.
    var list: SealList?

    static let none = EntryAdditions()
}

extension EntryPayload {
    /// True for entries with a generation.
    var beginsGeneration: Bool {
        switch self {
        case .found, .remove, .rotate: true
        default: false
        }
    }
}
