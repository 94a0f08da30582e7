internal import HTTPCore
internal import Postgres
internal import VaultLog

/// The log of a vault whose row is locked, and changes of it.
struct StoredLog {
    let vaultID: VaultID
    private(set) var log: MembershipLog
    private var state: VaultState
    private let transaction: Transaction
    private let pace: Pace
    /// The time of the request.
    private let now: Timestamp

    /// Reads the log, and ends a recovery whose time is over.
    init(
        of vaultID: VaultID, in transaction: Transaction, _ logs: LogCache, pace: Pace, now: Timestamp
    ) async throws {
        guard let state = try await transaction.execute(FindVaultState(vaultID: vaultID)).first else {
            throw Problem.notFound
        }
        self.vaultID = vaultID
        self.state = state
        self.transaction = transaction
        self.pace = pace
        self.now = now
        log = try await logs.read(vaultID, upTo: state.head, pace: pace) { try await transaction.execute($0) }
        if state.recoveryBegan != nil, !isRecovering { settle() }
    }

    /// True if the entry stands in the log: the request repeats one whose reply was lost.
    func contains(_ entry: Entry) -> Bool { log.hash(at: entry.number) == entry.hash }

    /// Returns true for the seat of the vault's owner. An owner by a provisional entry is none yet.
    func isOwned(by seat: VaultSeat) -> Bool { state.owner == seat.memberID }

    /// True while members put entries back.
    var isRecovering: Bool { VaultRecovery.end(began: state.recoveryBegan, now: now) != nil }

    /// Appends an entry and stores its effects.
    ///
    /// - Parameter holder: The account of a new member.
    /// - Returns: The vault's revision.
    /// - Throws: ``VaultProblem``, or a `PostgresError`.
    mutating func append(
        _ entry: Entry, _ additions: EntryAdditions = .none, holder: AccountID? = nil
    ) async throws -> Int64 {
        guard continues(entry) else { throw try await moved(since: entry.number.value - 1) }
        if isRecovering { throw VaultProblem.recovering }
        try VaultTime.check(entry, at: now)
        let before = log
        try await EntryRates(vaultID: vaultID, transaction: transaction)
            .check(entry, after: before, owner: state.owner, at: now)
        do throws(EntryRejection) { try log.append(entry) } catch { throw VaultProblem.refused(error) }
        try additions.keys.check(since: before, log)
        transaction.enqueue(InsertEntries(vaultID: vaultID, entries: [entry], arrivedAt: now))
        storeMembers(entry.concerned, holder: holder)
        storeKeys(additions.keys, entry, since: before)
        closeInvitations(since: before)
        try await storeList(additions.list, of: entry)
        return try await moveHead()
    }

    private func storeList(_ list: StoredList?, of entry: Entry) async throws {
        guard case .seal(let seal) = entry.payload else {
            if list != nil { throw VaultProblem.invalidList }
            return
        }
        guard let list else { throw VaultProblem.invalidList }
        try await SealLists(vaultID: vaultID, transaction: transaction).store(list, of: seal, entry, isNew: true)
    }

    private func continues(_ entry: Entry) -> Bool {
        entry.number.value == log.head.number.value + 1 && entry.previous == log.head.hash
    }

    /// Returns the error for a log that ends elsewhere, with the entries above a number.
    func moved(since number: UInt64) async throws -> VaultProblem {
        let later = try await transaction.execute(
            FindEntries(vaultID: vaultID, after: Int64(clamping: number), limit: 128))
        return .membershipMoved(head: Int64(log.head.number.value), entries: later)
    }

    /// Stores the log's end. Returns the vault's revision.
    ///
    /// - Parameter settled: The number above which entries are provisional. Nil leaves it.
    private func moveHead(settled: Int64? = nil) async throws -> Int64 {
        let head = log.head
        guard
            let revision = try await transaction.execute(
                MoveHead(
                    vaultID: vaultID, number: Int64(head.number.value), hash: head.hash.bytes,
                    keyID: log.currentGeneration.keyID.number, generationNumber: Int64(log.generationStart.value),
                    isRotationDue: log.isRotationDue,
                    owner: settled == nil ? MemberID(log.owner.bytes) : state.owner, settled: settled)
            ).first
        else { throw Problem.notFound }
        return revision
    }

    // MARK: Effects

    /// Stores members as the log has them.
    ///
    /// - Parameters:
    ///   - ids: The members.
    ///   - holder: The account of a new member. Nil for one that is put back.
    ///   - settled: The number above which entries are provisional, if any are.
    private func storeMembers(
        _ ids: some Sequence<VaultLog.MemberID>, holder: AccountID? = nil, settled: UInt64? = nil
    ) {
        let members = ids.compactMap { log.members[$0] }
        if members.isEmpty { return }
        transaction.enqueue(
            PutMembers(
                vaultID: vaultID, members: members.map { MemberID($0.id.bytes) }, holder: holder,
                roles: members.map { Int32(VaultRole(log.role(of: $0, settled: settled)).rawValue) },
                since: members.map { Int64($0.since.value) }))
        if settled == nil { transaction.enqueue(ForgetFormerHolders(vaultID: vaultID, since: now - Discarding.period)) }
    }

    private func storeKeys(_ keys: NewKeys?, _ entry: Entry, since before: MembershipLog) {
        let generation = Int64(log.currentGeneration.number.value)
        if let keys {
            transaction.enqueue(
                InsertBoxes(
                    vaultID: vaultID, generation: generation, members: keys.boxes.map(\.member),
                    boxes: keys.boxes.map(\.box)))
            transaction.enqueue(
                InsertPreviousKeys(vaultID: vaultID, generations: [generation], keys: [keys.previousKey]))
        }
        if log.generations.count > before.generations.count {
            removeOtherBoxes()
        } else if entry.endsBox {
            transaction.enqueue(RemoveBox(vaultID: vaultID, memberID: MemberID(entry.author.bytes)))
        }
    }

    private func removeOtherBoxes() {
        transaction.enqueue(
            RemoveOtherBoxes(
                vaultID: vaultID, generation: Int64(log.currentGeneration.number.value),
                members: log.presentMembers.map { MemberID($0.id.bytes) }))
    }

    private func closeInvitations(since before: MembershipLog) {
        let closed = before.unclosed.subtracting(log.unclosed)
        if closed.isEmpty { return }
        transaction.enqueue(RemoveInvitations(vaultID: vaultID, ids: closed.map { InvitationID($0.bytes) }))
    }

    // MARK: Recovery

    /// Appends entries that a restored database lacks, and skips those that stand in the log.
    ///
    /// All entries above the number at which the recovery began are provisional. Those of the owner replace them from
    /// the first difference on. An entry of another sender's own ends the run: its author could have made it now.
    ///
    /// A join of others than the owner cannot date from before the last settled entry: its invitation may have expired.
    ///
    /// The keys of their generations, their lists and the accounts of their joins follow by other requests.
    ///
    /// - Parameter sender: The member that puts back.
    /// - Returns: The vault's revision. Nil if nothing was stored.
    mutating func putBack(_ missing: [Entry], by sender: MemberID) async throws -> Int64? {
        guard isRecovering else { throw VaultProblem.notRecovering }
        let isOwner = state.owner == sender
        let settled = state.settled ?? state.head.number
        let start = log
        let earliest = isOwner ? nil : try await time(of: settled)
        var replaced: Int64?
        var stored: [Entry] = []
        for entry in missing where replaced != nil || !contains(entry) {
            if log.hash(at: entry.number) != nil, isOwner, replaced == nil, entry.number.value > UInt64(settled) {
                replaced = Int64(entry.number.value)
                log = try await readLog(upTo: entry.number.value - 1)
            }
            guard continues(entry) else { throw try await moved(since: entry.number.value - 1) }
            guard isOwner || MemberID(entry.author.bytes) != sender else { break }
            try VaultTime.checkPast(entry, at: now)
            if let earliest, entry.payload.kind == .join { try VaultTime.checkOrder(entry, after: earliest, at: now) }
            do throws(EntryRejection) { try log.append(entry) } catch { throw VaultProblem.refused(error) }
            stored.append(entry)
            if stored.count % 16 == 0 { await pace.giveWay() }
        }
        if log.head == start.head { return nil }
        storeRun(stored, replaced: replaced, settled: settled, since: start)
        return try await moveHead(settled: settled)
    }

    private func storeRun(_ stored: [Entry], replaced: Int64?, settled: Int64, since start: MembershipLog) {
        var concerned = Set(stored.flatMap(\.concerned))
        if let replaced {
            transaction.enqueue(RemoveEntries(vaultID: vaultID, from: replaced))
            transaction.enqueue(RemoveSeals(vaultID: vaultID, from: replaced))
            transaction.enqueue(
                RemovePreviousKeys(
                    vaultID: vaultID, from: Int64(log.generation(at: replaced - 1)?.number.value ?? 1) + 1))
            transaction.enqueue(
                RemoveMembers(vaultID: vaultID, except: log.members.keys.map { MemberID($0.bytes) }))
            concerned = Set(log.members.keys)
        }
        transaction.enqueue(InsertEntries(vaultID: vaultID, entries: stored, arrivedAt: nil))
        storeMembers(concerned, settled: UInt64(settled))
        removeOtherBoxes()
        closeInvitations(since: start)
    }

    /// Returns the time of an entry.
    private func time(of number: Int64) async throws -> EntryTime? {
        let bytes = try await transaction.execute(FindEntry(vaultID: vaultID, number: number)).first
        return bytes.flatMap { try? Entry($0) }?.time
    }

    /// Reads the log's beginning.
    private func readLog(upTo number: UInt64) async throws -> MembershipLog {
        guard let hash = EntryNumber(number).flatMap({ log.hash(at: $0) }),
            let log = try await LogCache.extend(
                nil, of: vaultID, upTo: StoredHead(number: Int64(number), hash: hash.bytes), pace: pace,
                { try await transaction.execute($0) })
        else { throw Problem.internalError }
        return log
    }

    /// Ends the recovery: provisional entries count from now on.
    mutating func settle() {
        transaction.enqueue(EndRecovery(vaultID: vaultID, owner: MemberID(log.owner.bytes)))
        if state.settled != nil { storeMembers(log.members.keys) }
        state.hasRecovered(owner: MemberID(log.owner.bytes))
    }
}

/// The parts of a request that accompany an entry.
struct EntryAdditions: Sendable {
    /// The keys of a new generation.
    var keys: NewKeys?
    /// The list of a seal.
    var list: StoredList?

    static let none = EntryAdditions()
}

extension MembershipLog {
    /// Returns the role of a member. While entries are provisional, they lower roles and end memberships, and give
    /// nothing: former members could have made them, and joins can be by invitations that were closed since the backup.
    ///
    /// - Parameter settled: The number above which entries are provisional, if any are.
    fileprivate func role(of member: VaultLog.VaultMember, settled: UInt64?) -> Role? {
        guard let settled, let number = EntryNumber(settled) else { return member.role }
        guard let present = member.role, let earlier = member.role(at: number) else { return nil }
        return min(earlier, present)
    }

    /// Returns the generation that is current after the entry with a number.
    fileprivate func generation(at number: Int64) -> Generation? {
        EntryNumber(UInt64(clamping: number)).map { generation(at: $0) }
    }
}

extension VaultRole {
    /// Converts a role of the log; nil for a former member.
    init(_ role: Role?) { self = role.flatMap { VaultRole(rawValue: Int16($0.rawValue)) } ?? .ended }
}

extension Entry {
    /// The members whose role or keys the entry changes.
    fileprivate var concerned: [VaultLog.MemberID] {
        switch payload {
        case .join, .leave, .rekey: [author]
        case .role(let member, _): [member]
        case .remove(_, let members): members
        case .found, .invite, .rotate, .revoke, .seal, .offer, .accept: []
        }
    }

    /// True if the author's box is of no more use: it has left, or has other keys.
    fileprivate var endsBox: Bool {
        switch payload {
        case .leave, .rekey: true
        default: false
        }
    }
}
