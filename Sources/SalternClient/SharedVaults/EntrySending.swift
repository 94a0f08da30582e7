internal import Cryptography
internal import Foundation
internal import VaultLog

/// Makes an entry at the head of the log and appends it on the server. After other members' entries it makes another.
/// The caller holds ``SharedVaultService/lock``.
struct EntrySending {
    let service: SharedVaultService
    let id: SharedVaultID

    /// An entry with everything that is sent with it.
    struct Draft {
        var request: VaultEntryRequest
        let entry: Entry
        /// The key of a new generation.
        var key: GenerationKey?
        /// The list of a seal.
        var list: SealList?
    }

    /// The maximum number of entries that are made for one change.
    private static let attempts = 8

    private var session: VaultSession { service.session }

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
    static func draftOfGeneration(
        _ state: SharedVaultState, at time: EntryTime, _ payload: (Generation) -> EntryPayload?
    ) throws(VaultError) -> Draft {
        let key = GenerationKey.random(for: state.log)
        guard let number = state.log.currentGeneration.number.next,
            let payload = payload(Generation(key, number: number))
        else { throw .shared(.full) }
        var draft = try draft(payload, state, at: time)
        let next = try following(state.log, draft.entry)
        // Without the present key, a random one stands for it. Items under the present key stay unreadable.
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
    ///   - repairs: True for an entry that also repairs a missing or wrong key.
    ///   - send: Sends the request; nil for the route of most kinds.
    ///   - make: Makes the entry for the present state.
    @discardableResult
    func append(
        repairs: Bool = false,
        send: ((SalternAPI, Draft, Token) async throws(APIError) -> Void)? = nil,
        _ make: (SharedVaultState, EntryTime) throws(VaultError) -> Draft
    ) async throws(VaultError) -> Draft {
        for _ in 0..<Self.attempts {
            let state = try service.known(id)
            try state.checkWritable(repairs: repairs)
            let draft = try make(state, service.now)
            _ = try Self.following(state.log, draft.entry)
            let token = try service.token
            do throws(APIError) {
                try await session.settings.retries({ () throws(APIError) in
                    if let send { return try await send(session.api, draft, token) }
                    let reply = try await session.api.appendEntry(id, draft.request, token)
                    guard reply.number == draft.entry.number.value, reply.hash.bytes == draft.entry.hash.bytes else {
                        throw .unexpectedReply
                    }
                })
            } catch {
                switch error.code {
                case .membershipMoved?:
                    try await LogUpdate(service: service, id: id).fetch(after: state.log.head.number.value)
                    continue
                case .vaultMoved?: throw .shared(.busy)
                default: throw VaultError(ofShared: error)
                }
            }
            try accept(draft, state)
            return draft
        }
        throw .shared(.busy)
    }

    /// Stores an entry that the server has appended.
    private func accept(_ draft: Draft, _ state: SharedVaultState) throws(VaultError) {
        var previous: [VaultPreviousKey] = []
        if let key = draft.key, let sealed = draft.request.previousKey,
            let number = state.log.currentGeneration.number.next
        {
            previous = [VaultPreviousKey(generation: number.value, key: sealed.bytes)]
            try service.update(id) { record in
                record.take(key, number)
                record.take(draft.entry.head)
            }
        }
        if let list = draft.list {
            try session.stored { try session.store.putSealList(list, draft.entry.number.value, of: id) }
        }
        try service.take([draft.entry], previous, id)
        service.notify([id])
    }
}
