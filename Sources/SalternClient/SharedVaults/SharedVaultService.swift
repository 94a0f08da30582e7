internal import Cryptography
internal import Foundation
internal import VaultLog

/// The shared vaults of an account on this device: their states, and everything that changes them.
///
/// Logs change only while ``lock`` is held. A task that holds it never waits for ``VaultSession/serverLock``.
final class SharedVaultService {
    let session: VaultSession
    let owners: ItemOwners
    let syncing: SyncService
    let lock = AsyncMutex()
    /// A loaded state, with what it was made of.
    private struct LoadedState {
        let version: ItemVersion
        let count: UInt64
        /// Other processes write while the store is closed here, or between two transactions.
        let openings: Int
        let foreignVersion: Int64
        var state: SharedVaultState
    }

    private var states: [SharedVaultID: LoadedState] = [:]
    /// The sealings of the last states, with the findings of which they were made.
    private var sealings: [SharedVaultID: (findings: VaultFindings, canReturn: Bool, sealing: VaultSealing)] = [:]
    /// The server's last statements about the vaults.
    var descriptions: [SharedVaultID: VaultDescription] = [:]
    /// The server's statements about the openings of invitations' links.
    var openings: [SharedVaultID: [InvitationID: Int]] = [:]
    /// By vault, the generations whose previous key this device has and the server lacked, when it was last asked.
    var lostPreviousKeys: [SharedVaultID: Set<GenerationNumber>] = [:]
    /// The lists that this process has stored on the server again.
    var offeredLists: Set<OfferedList> = []
    /// The results of fetching items before a round.
    var reports: [SharedVaultID: SyncReport] = [:]
    /// The vaults that a running call founds.
    var beingFounded: Set<SharedVaultID> = []
    let evidence = JudgingEvidence()

    init(_ session: VaultSession, _ owners: ItemOwners, _ syncing: SyncService) {
        self.session = session
        self.owners = owners
        self.syncing = syncing
        session.memberships = self
        session.whenLocked.append { [weak self] in self?.forgetSecrets() }
    }

    /// Removes keys and names from memory, when the vault is locked.
    private func forgetSecrets() {
        states = [:]
        sealings = [:]
        descriptions = [:]
        openings = [:]
        lostPreviousKeys = [:]
        reports = [:]
    }

    /// The items of the account.
    var items: VaultItems { owners.account.items }

    var founding: VaultFounding { VaultFounding(service: self) }
    var inviting: VaultInviting { VaultInviting(service: self) }

    var token: Token { get throws(VaultError) { try session.open.token } }

    /// The server's time, for entries.
    var now: EntryTime { EntryTime(session.serverTime) }

    /// The server's time, in seconds since 1970.
    var moment: Int64 { Int64(session.serverTime.timeIntervalSince1970) }

    // MARK: Records

    /// Returns the ids of the vaults for which this account has keys.
    func recordIDs() throws(VaultError) -> [SharedVaultID] {
        var ids: [SharedVaultID] = []
        for id in try allRecordIDs() where try record(id)?.isForgotten == false { ids.append(id) }
        return ids
    }

    func allRecordIDs() throws(VaultError) -> [SharedVaultID] {
        try items.ids(MembershipRecord.collection).map { SharedVaultID($0.uuid) }
    }

    /// Returns the vaults that a person has removed from this account, and whose log or items this device still has.
    func forgottenIDs() throws(VaultError) -> [SharedVaultID] {
        let known = Set(try ids())
        let tables = Set(try session.stored { try session.store.vaults() })
        var ids: [SharedVaultID] = []
        for id in try allRecordIDs() where known.contains(id) || tables.contains(id) {
            if try record(id)?.isForgotten == true { ids.append(id) }
        }
        return ids
    }

    /// Returns the keys of this account in a vault; nil for none, and for those of a later version of the app.
    func record(_ id: SharedVaultID) throws(VaultError) -> MembershipRecord? {
        guard let content = try session.stored({ try session.store.current(ItemID(id.uuid)) }),
            content.collection == MembershipRecord.collection
        else { return nil }
        do throws(VaultError) {
            return try items.item(ItemID(id.uuid)).flatMap { MembershipRecord($0.body) }
        } catch .unreadable {
            return nil
        }
    }

    /// Stores the keys of this account in a vault. The next sync sends them.
    /// - Throws: ``VaultError/unreadable`` instead of replacing keys that a later version of the app has written.
    func write(_ record: MembershipRecord, _ id: SharedVaultID) throws(VaultError) {
        if try self.record(id) == nil, try session.stored({ try session.store.current(ItemID(id.uuid)) }) != nil {
            throw .unreadable
        }
        let item = PlainItem(body: try record.body)
        try items.putUnbounded(item, ItemID(id.uuid), in: MembershipRecord.collection)
    }

    /// Changes the keys of this account in a vault, if the change makes a difference.
    func update(
        _ id: SharedVaultID, _ change: (inout MembershipRecord) -> Void
    ) throws(VaultError) {
        guard var record = try record(id) else { return }
        let before = try record.body
        change(&record)
        if try record.body != before { try write(record, id) }
    }

    /// Restores records that a tombstone has removed, as long as the log has this account as a present member. A
    /// server can invent tombstones, and no device of this account deletes a record.
    func restoreRecords() throws(VaultError) {
        for id in try ids() {
            let item = ItemID(id.uuid)
            guard try session.stored({ try session.store.current(item) }) == nil,
                let trashed = try session.stored({ try session.store.trashed(item) }),
                trashed.content.collection == MembershipRecord.collection,
                let opened = try? session.sealer.open(trashed.content, item),
                let record = MembershipRecord(opened.item.body), try isPresent(record, id)
            else { continue }
            try session.transaction {
                try write(record, id)
                try session.store.removeFromTrash(item)
            }
        }
    }

    /// True when the known log has a present member with keys of a record.
    private func isPresent(_ record: MembershipRecord, _ id: SharedVaultID) throws(VaultError) -> Bool {
        guard !record.isForgotten, let log = try storedLog(id) else { return false }
        return log.presentMembers.contains { record.privateKeys(of: $0.keys) != nil }
    }

    // MARK: States

    /// Returns the ids of the vaults whose log this device has.
    func ids() throws(VaultError) -> [SharedVaultID] { try session.stored { try session.store.vaultIDs() } }

    /// Returns the known log of a vault. The signatures were verified before the entries were stored.
    private func storedLog(_ id: SharedVaultID) throws(VaultError) -> MembershipLog? {
        let entries = try session.stored { try session.store.entries(of: id) }
        if entries.isEmpty { return nil }
        guard let log = try? MembershipLog(entries, areVerified: true) else { throw .store(.damaged) }
        return log
    }

    /// Returns the state of a vault; nil when this device does not have its log or its keys.
    func state(_ id: SharedVaultID) throws(VaultError) -> SharedVaultState? {
        _ = try session.open
        let store = session.store
        let (count, foreign) = try session.stored { (try store.entryCount(of: id), try store.foreignVersion()) }
        guard count > 0, let version = try items.version(of: ItemID(id.uuid)) else { return nil }
        if let known = states[id], known.version == version, known.count == count, known.openings == session.openings,
            known.foreignVersion == foreign
        {
            return known.state
        }
        guard let record = try record(id), !record.isForgotten, let log = try storedLog(id) else { return nil }
        var state = SharedVaultState(id: id, record: record, log: log)
        state.openKeys(try session.stored { try store.previousKeys(of: id) })
        state.findings = try read(.findings, of: id) ?? VaultFindings()
        state.seats = try read(.seats, of: id) ?? []
        states[id] = LoadedState(
            version: version, count: count, openings: session.openings, foreignVersion: foreign, state: state)
        sealings[id] = nil
        return state
    }

    /// Returns the state of a vault.
    /// - Throws: ``SharedVaultError/unknownVault``.
    func known(_ id: SharedVaultID) throws(VaultError) -> SharedVaultState {
        guard let state = try state(id) else { throw .shared(.unknownVault) }
        return state
    }

    /// Stores verified entries that continue the known log.
    func take(_ entries: [Entry], _ id: SharedVaultID) throws(VaultError) {
        guard !entries.isEmpty else { return }
        try session.transaction { for entry in entries { try session.store.put(entry, of: id) } }
        forgetState(id)
    }

    /// Opens sealed previous keys of the server, and stores those that fit the log. One that opens is never replaced.
    /// - Returns: True when this device has further keys.
    @discardableResult
    func takePreviousKeys(_ sealed: [GenerationNumber: [UInt8]], _ id: SharedVaultID) throws(VaultError) -> Bool {
        guard !sealed.isEmpty, let state = try state(id) else { return false }
        let stored = try session.stored { try session.store.previousKeys(of: id) }
        var keys = state.keys
        var taken: [GenerationNumber: [UInt8]] = [:]
        for (earlier, later) in zip(state.log.generations, state.log.generations.dropFirst()).reversed() {
            guard let key = keys[later.number], let box = sealed[later.number], box != stored[later.number],
                stored[later.number].flatMap({ key.openPrevious($0, of: state.log.vault, earlier) }) == nil,
                let previous = key.openPrevious(box, of: state.log.vault, earlier)
            else { continue }
            taken[later.number] = box
            try? keys.insert(previous, earlier.number, state.log)
        }
        if taken.isEmpty { return false }
        try session.transaction {
            for (number, box) in taken { try session.store.putPreviousKey(box, number, of: id) }
        }
        forgetState(id)
        return true
    }

    /// Forgets what was made of the stored log, so that the next call makes it again.
    func forgetState(_ id: SharedVaultID) {
        states[id] = nil
        sealings[id] = nil
    }

    /// Returns the sealing of a state.
    func sealing(_ state: SharedVaultState) throws(VaultError) -> VaultSealing {
        let isRecovering = descriptions[state.id]?.recoveringUntil.map { $0 > session.serverTime } ?? false
        let canReturn = state.canReturn(at: moment)
        if let known = sealings[state.id], known.findings == state.findings, known.canReturn == canReturn,
            known.sealing.isRecovering == isRecovering
        {
            return known.sealing
        }
        var names: [VaultLog.MemberID: String] = [:]
        for member in state.log.members.values { names[member.id] = name(of: member, state) }
        let lists = try session.stored { try session.store.sealLists(of: state.id) }
        let sealing = VaultSealing(
            id: state.id, log: state.log, keys: state.keys, signer: try? state.signer, role: state.role,
            evidence: evidence, refused: state.findings.refused ?? [],
            isStopped: canReturn || state.problems.contains { $0.stopsWriting && $0 != .ended },
            lists: SealLists(lists), names: names, own: state.ownMembers, isRecovering: isRecovering)
        sealings[state.id] = (state.findings, canReturn, sealing)
        return sealing
    }

    func note(_ id: SharedVaultID, _ change: (inout VaultFindings) -> Void) throws(VaultError) {
        let before: VaultFindings = try read(.findings, of: id) ?? VaultFindings()
        var findings = before
        change(&findings)
        guard findings != before else { return }
        try write(findings, .findings, of: id)
        states[id]?.state.findings = findings
        notify([id])
    }

    func findings(of id: SharedVaultID) throws(VaultError) -> VaultFindings {
        try read(.findings, of: id) ?? VaultFindings()
    }

    func note(_ seats: [VaultSeat], _ id: SharedVaultID) throws(VaultError) {
        guard try read(.seats, of: id) != seats else { return }
        try write(seats, .seats, of: id)
        states[id]?.state.seats = seats
        notify([id])
    }

    private func read<Value: Decodable>(_ fact: VaultFact, of id: SharedVaultID) throws(VaultError) -> Value? {
        try session.stored { try session.store.fact(fact, of: id) }
            .flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }

    private func write(_ value: some Encodable, _ fact: VaultFact, of id: SharedVaultID) throws(VaultError) {
        try session.stored { try session.store.set(fact, of: id, [UInt8](JSONEncoder().encode(value))) }
    }

    /// Keeps a vault that another device has forgotten while this device has unsent edits in it. The keys come back
    /// from a replaced version of the record, and the vault stays as one that the account has left.
    /// - Returns: False without unsent edits, and without the keys.
    func keepUnsent(of id: SharedVaultID) throws(VaultError) -> Bool {
        guard try session.stored({ try session.store.number(of: id) }) != nil, try unsentCount(of: id) > 0,
            var former = try formerRecord(id)
        else { return false }
        former.left = former.memberId
        try write(former, id)
        forgetState(id)
        try noteEnd(of: id)
        return true
    }

    /// Returns the latest record of a forgotten vault with keys.
    private func formerRecord(_ id: SharedVaultID) throws(VaultError) -> MembershipRecord? {
        try replacedRecords(id).first { !$0.isForgotten }
    }

    /// Returns the replaced versions of a record on this device, the latest first.
    private func replacedRecords(_ id: SharedVaultID) throws(VaultError) -> [MembershipRecord] {
        let item = ItemID(id.uuid)
        var records: [MembershipRecord] = []
        for version in try items.replacedVersions(of: item) {
            if let record = MembershipRecord(try items.item(item, replaced: version.number).body) {
                records.append(record)
            }
        }
        return records
    }

    /// Puts keys that another device has dropped back into the record. It drops a key to which sealed previous keys
    /// lead, and a device that has lost access to the vault cannot fetch those.
    func restoreKeys(of id: SharedVaultID) throws(VaultError) {
        guard let state = try state(id), state.log.generations.contains(where: { state.keys[$0.number] == nil })
        else { return }
        let boxes = try session.stored { try session.store.previousKeys(of: id) }
        let former = try replacedRecords(id)
        try update(id) { record in
            for version in former { record.takeKeys(of: version, in: state.log) }
            record.dropReachable(boxes, in: state.log)
        }
        forgetState(id)
    }

    /// Removes a vault from this device, and its keys from the account. The caller holds no lock.
    func forget(_ id: SharedVaultID) async throws(VaultError) {
        // A running round uses the tables.
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await holding { () async throws(VaultError) in try forgetAlone(id) }
    }

    /// Removes a vault. The caller holds ``VaultSession/serverLock`` and ``lock``.
    private func forgetAlone(_ id: SharedVaultID) throws(VaultError) {
        let memberId = try record(id)?.memberId
        try session.transaction {
            if let memberId { try write(MembershipRecord(forgotten: memberId), id) }
            try session.store.forgetVault(id)
            try session.store.removeTables(of: id)
        }
        forgetState(id)
        descriptions[id] = nil
        openings[id] = nil
        lostPreviousKeys[id] = nil
        reports[id] = nil
        owners.forget(id)
        notify([id])
    }

    /// Adds the result of fetching items before the round of a vault.
    func add(_ report: SyncReport, of id: SharedVaultID) {
        var all = reports[id] ?? SyncReport()
        all.add(report)
        reports[id] = all
    }

    // MARK: Observing

    func notify(_ ids: Set<SharedVaultID>) { session.observers.vaults.notify(ids) }

    // MARK: Requests

    /// Runs a step while no other task changes a log.
    func holding<Result>(_ body: () async throws(VaultError) -> Result) async throws(VaultError) -> Result {
        await lock.lock()
        defer { lock.unlock() }
        return try await body()
    }

    /// Fetches the items of a vault, and judges them by the known log.
    func fetchItems(_ id: SharedVaultID) async throws(VaultError) {
        add(try await syncing.fetch(.none, of: .vault(id), learns: false), of: id)
    }

    /// The attempts to append an entry for which a person waits.
    private static let attempts = 8

    /// Runs a step that appends an entry for which a person waits, while no other task changes a log. It repeats the
    /// step after other members' entries, and fetches the items before it takes those: they can cut a writer off.
    func appending<Result>(
        to id: SharedVaultID, _ body: () async throws(VaultError) -> Result
    ) async throws(VaultError) -> Result {
        for _ in 1..<Self.attempts {
            do throws(VaultError) { return try await holding(body) } catch .shared(.busy) {}
            try await SharedVaultRefresh(service: self).catchUp(id)
        }
        return try await holding(body)
    }

    /// Calls the API with retries, and converts errors about shared vaults.
    func call<Result: Sendable>(
        _ body: (SalternAPI) async throws(APIError) -> Result
    ) async throws(VaultError) -> Result {
        do throws(APIError) {
            return try await session.settings.retries({ () throws(APIError) in try await body(session.api) })
        } catch {
            throw VaultError(ofShared: error)
        }
    }
}

/// A list of a seal that was stored on the server again.
struct OfferedList: Hashable {
    let vault: SharedVaultID
    let number: UInt64
}

extension VaultError {
    /// True when other vaults, and other requests about this one, can succeed.
    var isOfVaultAlone: Bool {
        switch self {
        case .locked, .sessionEnded, .store, .unavailable(.transport): false
        default: true
        }
    }

    /// Converts an error of a request about a shared vault.
    init(ofShared error: APIError) {
        guard case .problem(let problem) = error else {
            self = VaultError(error)
            return
        }
        switch problem.code {
        case .clockSkew: self = .shared(.wrongClock)
        case .recovering: self = .shared(.recovering)
        case .alreadyMember: self = .shared(.alreadyMember)
        case .roleTooLow: self = .shared(.notPermitted)
        case .membershipMoved: self = .shared(.busy)
        case .entryRefused:
            // The text of a server is not shown.
            let rejection = problem.reason.flatMap { EntryRejection(rawValue: $0) }
            self = .shared(rejection.map { SharedVaultError($0) } ?? .rejected("unknown"))
        case .notFound: self = .shared(.unknownVault)
        default: self = VaultError(error)
        }
    }
}
