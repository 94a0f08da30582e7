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
    /// The last loaded states, with the versions of which they were made.
    private var states: [SharedVaultID: (version: ItemVersion, count: UInt64, state: SharedVaultState)] = [:]
    /// The sealings of the last states, with the findings of which they were made.
    private var sealings: [SharedVaultID: (findings: VaultFindings, sealing: VaultSealing)] = [:]
    /// The server's last statements about the vaults.
    var descriptions: [SharedVaultID: VaultDescription] = [:]
    /// The results of fetching items before a round.
    var reports: [SharedVaultID: SyncReport] = [:]

    init(_ session: VaultSession, _ owners: ItemOwners, _ syncing: SyncService) {
        self.session = session
        self.owners = owners
        self.syncing = syncing
        session.memberships = self
    }

    /// The items of the account.
    var items: VaultItems { owners.account.items }

    var founding: VaultFounding { VaultFounding(service: self) }
    var inviting: VaultInviting { VaultInviting(service: self) }

    var token: Token { get throws(VaultError) { try session.open.token } }

    /// The server's time, for entries.
    var now: EntryTime { EntryTime(session.serverTime) }

    // MARK: Records

    /// Returns the ids of the vaults for which this account has keys.
    func recordIDs() throws(VaultError) -> [SharedVaultID] {
        try items.ids(MembershipRecord.collection).map { SharedVaultID($0.uuid) }
    }

    /// Returns the keys of this account in a vault; nil for none.
    func record(_ id: SharedVaultID) throws(VaultError) -> MembershipRecord? {
        guard let content = try session.stored({ try session.store.current(ItemID(id.uuid)) }),
            content.collection == MembershipRecord.collection
        else { return nil }
        guard let item = try items.item(ItemID(id.uuid)), let record = MembershipRecord(item.body) else {
            throw .unreadable
        }
        return record
    }

    /// Stores the keys of this account in a vault. The next sync sends them.
    func write(_ record: MembershipRecord, _ id: SharedVaultID) throws(VaultError) {
        let item = PlainItem(body: try record.body)
        try items.putUnbounded(item, ItemID(id.uuid), in: MembershipRecord.collection)
    }

    /// Stores keys that were read from the server, if they differ.
    func update(
        _ id: SharedVaultID, _ change: (inout MembershipRecord) -> Void
    ) throws(VaultError) {
        guard var record = try record(id) else { return }
        change(&record)
        try write(record, id)
    }

    /// Restores records that a tombstone has removed, as long as the log has this account as a member. A server can
    /// invent tombstones.
    func restoreRecords() throws(VaultError) {
        for id in try session.stored({ try session.store.vaultIDs() }) {
            let item = ItemID(id.uuid)
            guard try record(id) == nil, let trashed = try session.stored({ try session.store.trashed(item) }),
                trashed.content.collection == MembershipRecord.collection
            else { continue }
            try items.restore(item)
        }
    }

    // MARK: States

    /// Returns the ids of the vaults whose log this device has.
    func ids() throws(VaultError) -> [SharedVaultID] { try session.stored { try session.store.vaultIDs() } }

    /// Returns the state of a vault; nil when this device does not have its log or its keys.
    func state(_ id: SharedVaultID) throws(VaultError) -> SharedVaultState? {
        let store = session.store
        let count = try session.stored { try store.entryCount(of: id) }
        guard count > 0, let version = try items.version(of: ItemID(id.uuid)) else { return nil }
        var state: SharedVaultState
        if let known = states[id], known.version == version, known.count == count {
            state = known.state
        } else {
            guard let record = try record(id) else { return nil }
            let entries = try session.stored { try store.entries(of: id) }
            // The signatures were verified before the entries were stored.
            guard let log = try? MembershipLog(entries, areVerified: true) else { throw .store(.damaged) }
            state = SharedVaultState(
                id: id, record: record, log: log, keys: GenerationKeys(), findings: VaultFindings(), seats: [])
            let previous = try session.stored { try store.previousKeys(of: id) }
            state.openKeys(previous)
            states[id] = (version, count, state)
            sealings[id] = nil
        }
        state.findings = try read(.findings, of: id) ?? VaultFindings()
        state.seats = try read(.seats, of: id) ?? []
        return state
    }

    /// Returns the state of a vault.
    /// - Throws: ``SharedVaultError/unknownVault``.
    func known(_ id: SharedVaultID) throws(VaultError) -> SharedVaultState {
        guard let state = try state(id) else { throw .shared(.unknownVault) }
        return state
    }

    /// Stores verified entries that continue the known log, and sealed previous keys.
    func take(
        _ entries: [Entry], _ previousKeys: [VaultPreviousKey] = [], _ id: SharedVaultID
    ) throws(VaultError) {
        let store = session.store
        try session.stored {
            try store.transaction {
                for entry in entries { try store.put(entry, of: id) }
                for key in previousKeys { try store.putPreviousKey(key.key.bytes, key.generation, of: id) }
            }
        }
        if !previousKeys.isEmpty || !entries.isEmpty { forgetState(id) }
    }

    /// Forgets what was made of the stored log, so that the next call makes it again.
    func forgetState(_ id: SharedVaultID) {
        states[id] = nil
        sealings[id] = nil
    }

    /// Returns the sealing of a state.
    func sealing(_ state: SharedVaultState) throws(VaultError) -> VaultSealing {
        if let known = sealings[state.id], known.findings == state.findings { return known.sealing }
        var names: [VaultLog.MemberID: String] = [:]
        for member in state.log.members.values { names[member.id] = name(of: member, state) }
        let lists = try session.stored { try session.store.sealLists(of: state.id) }
        let sealing = VaultSealing(
            id: state.id, log: state.log, keys: state.keys, signer: try? state.signer, role: state.role,
            isStopped: state.problems.contains { $0.stopsWriting && $0 != .ended }, lists: lists, names: names,
            own: state.ownMembers)
        sealings[state.id] = (state.findings, sealing)
        return sealing
    }

    func note(_ id: SharedVaultID, _ change: (inout VaultFindings) -> Void) throws(VaultError) {
        let before: VaultFindings = try read(.findings, of: id) ?? VaultFindings()
        var findings = before
        change(&findings)
        guard findings != before else { return }
        try write(findings, .findings, of: id)
        notify([id])
    }

    func note(_ seats: [VaultSeat], _ id: SharedVaultID) throws(VaultError) {
        guard try read(.seats, of: id) != seats else { return }
        try write(seats, .seats, of: id)
        notify([id])
    }

    private func read<Value: Decodable>(_ fact: VaultFact, of id: SharedVaultID) throws(VaultError) -> Value? {
        try session.stored { try session.store.fact(fact, of: id) }
            .flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }

    private func write(_ value: some Encodable, _ fact: VaultFact, of id: SharedVaultID) throws(VaultError) {
        try session.stored { try session.store.set(fact, of: id, [UInt8](JSONEncoder().encode(value))) }
    }

    /// Removes the log and the keys of a vault from this device, and the keys from the account.
    func forget(_ id: SharedVaultID) throws(VaultError) {
        try session.stored { try session.store.transaction { try session.store.forgetVault(id) } }
        forgetState(id)
        try session.stored { try session.store.removeTables(of: id) }
        owners.forget(id)
        try items.deleteHidden(ItemID(id.uuid))
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

extension VaultError {
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
            let rejection = problem.reason.flatMap { EntryRejection(rawValue: $0) }
            self = .shared(rejection.map { SharedVaultError($0) } ?? .rejected(problem.reason ?? "unknown"))
        case .notFound: self = .shared(.unknownVault)
        default: self = VaultError(error)
        }
    }
}
