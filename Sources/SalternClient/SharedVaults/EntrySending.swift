internal import Cryptography
internal import Foundation
internal import VaultLog

/// Makes an entry at the head of the known log and appends it on the server. The caller holds
/// ``SharedVaultService/lock``.
struct EntrySending {
    let service: SharedVaultService
    let id: SharedVaultID
    /// True for an entry that no person waits for: a limit of the server's rates does not hold up the sync.
    var isAutomatic = false

    /// An entry with everything that is sent with it.
    struct Draft {
        var request: VaultEntryRequest
        let entry: Entry
        /// The key of a new generation.
        var key: GenerationKey?
        /// The list of a seal.
        var list: SealList?
    }

    private var session: VaultSession { service.session }

    private var retries: Retries {
        var retries = session.settings.retries
        if isAutomatic { retries.waits = min(retries.waits.lowerBound, .seconds(2))...(.seconds(2)) }
        return retries
    }

    // MARK: Drafts

    /// Makes an entry by this account's member.
    static func draft(
        _ payload: EntryPayload, _ state: SharedVaultState, at time: EntryTime
    ) throws(VaultError) -> Draft {
        let signer = try state.signer
        return try draft { () throws(EntryRejection) in
            try EntryWriter.entry(payload, by: signer, after: state.log, at: time)
        }
    }

    static func draft(_ make: () throws(EntryRejection) -> Entry) throws(VaultError) -> Draft {
        do throws(EntryRejection) {
            let entry = try make()
            return Draft(request: VaultEntryRequest(entry.bytes), entry: entry)
        } catch {
            throw .shared(SharedVaultError(error))
        }
    }

    /// Makes an entry that begins a generation, with a box for each member.
    /// - Parameter replacesMissingKey: True when a person has decided to begin a generation without the present key.
    ///   Members that have it keep it, and a manager among them sends it to the others later.
    static func draftOfGeneration(
        _ state: SharedVaultState, at time: EntryTime, replacesMissingKey: Bool,
        _ payload: (Generation) -> EntryPayload?
    ) throws(VaultError) -> Draft {
        guard state.presentKey != nil || replacesMissingKey else { throw .shared(.keyMissing) }
        let key = GenerationKey.random(for: state.log)
        guard let number = state.log.currentGeneration.number.next,
            let payload = payload(Generation(key, number: number))
        else { throw .shared(.full) }
        var draft = try draft(payload, state, at: time)
        let next = try following(state.log, draft.entry)
        // A random key stands for a missing one. No device stores it, because it does not fit the log.
        let previous = state.presentKey ?? GenerationKey.random(for: state.log)
        do {
            draft.request.boxes = try next.presentMembers.map { member in
                let box = try GenerationBox.seal(key, number, for: member.id, member.keys.agreement, of: next.vault)
                return VaultKeyBox(member: MemberID(member.id), box: Base64Bytes(box))
            }
            draft.request.previousKey = Base64Bytes(try key.sealPrevious(previous, of: next.vault, number: number))
        } catch {
            throw .unreadable
        }
        draft.key = key
        return draft
    }

    /// Returns the log after an entry.
    /// - Throws: The reason for which the log's rules reject the entry, before anything is sent.
    private static func following(_ log: MembershipLog, _ entry: Entry) throws(VaultError) -> MembershipLog {
        var next = log
        do throws(EntryRejection) { try next.append(entry) } catch { throw .shared(SharedVaultError(error)) }
        return next
    }

    // MARK: Sending

    /// Appends an entry.
    /// - Parameters:
    ///   - repairs: True for an entry that needs no key, or that ends the lack of one.
    ///   - leaves: True for the end of the own membership, which findings do not prevent.
    ///   - send: Sends the request; nil for the route of most kinds.
    ///   - make: Makes the entry for the present state. Nil when there is nothing to do any more.
    /// - Returns: The appended entry; nil when nothing was left to do.
    /// - Throws: ``SharedVaultError/busy`` after another member's entry. It is not taken before the items.
    @discardableResult
    func append(
        repairs: Bool = false, leaves: Bool = false,
        send: ((SalternAPI, Draft, Token) async throws(APIError) -> Void)? = nil,
        _ make: (SharedVaultState, EntryTime) throws(VaultError) -> Draft?
    ) async throws(VaultError) -> Draft? {
        let state = try service.known(id)
        if leaves { try state.checkLeavable() } else { try state.checkWritable(repairs: repairs) }
        try checkClock()
        guard let draft = try make(state, service.now) else { return nil }
        let next = try Self.following(state.log, draft.entry)
        let number = next.currentGeneration.number
        // The process can end before the reply, and the key would be nowhere else.
        if let key = draft.key { try service.update(id) { $0.take(key, number) } }
        let token = try service.token
        do throws(APIError) {
            try await retries({ () throws(APIError) in
                if let send { return try await send(session.api, draft, token) }
                let reply = try await session.api.appendEntry(id, draft.request, token)
                guard reply.number == draft.entry.number.value, reply.hash.bytes == draft.entry.hash.bytes else {
                    throw .unexpectedReply
                }
            })
        } catch {
            if let key = draft.key, !error.mayBeDone { try service.update(id) { $0.drop(key, number) } }
            throw error.code == .vaultMoved ? .shared(.busy) : VaultError(ofShared: error)
        }
        try accept(draft, state)
        return draft
    }

    /// Entries have the server's time, so a false one would be signed. A day is more than any time zone.
    private func checkClock() throws(VaultError) {
        guard session.api.clock.time() == nil || session.api.clock.confirms(session.settings.now()) else {
            throw .shared(.wrongClock)
        }
    }

    /// Stores an entry that the server has appended, with everything that other devices of the account need to notice a
    /// server that takes it back.
    private func accept(_ draft: Draft, _ state: SharedVaultState) throws(VaultError) {
        let log = try Self.following(state.log, draft.entry)
        try session.transaction {
            try service.take([draft.entry], id)
            if let list = draft.list {
                try session.store.putSealList(list, draft.entry.number.value, of: id)
                try session.store.keepSealLists(log.latestSeals.map(\.number.value), of: id)
            }
            try service.update(id) { record in
                record.takeHead(of: log)
                if let key = draft.key { record.take(key, log.currentGeneration.number) }
                if case .leave = draft.entry.payload { record.left = MemberID(draft.entry.author) }
            }
            if draft.key != nil, let sealed = draft.request.previousKey {
                try service.takePreviousKeys([log.currentGeneration.number: sealed.bytes], id)
                let previous = try session.store.previousKeys(of: id)
                try service.update(id) { $0.dropReachable(previous, in: log) }
            }
        }
        service.forgetState(id)
        service.notify([id])
    }
}
