internal import Cryptography
internal import Foundation
internal import VaultLog

/// The tasks of a member's device that need no person.
///
/// It seals, rotates, sends boxes, closes expired invitations and signs the head. The caller holds
/// ``SharedVaultService/lock``.
struct VaultUpkeep {
    let service: SharedVaultService
    let id: SharedVaultID

    /// The age of an unsealed entry, in seconds, from which on any manager's device seals it.
    private static let sealDelay: Int64 = 60
    /// The interval between two automatic rotations, in seconds.
    private static let rotationInterval: Int64 = 3_600
    /// The maximum number of expired invitations that one call closes.
    private static let revocations = 4

    private var session: VaultSession { service.session }
    private var sending: EntrySending { EntrySending(service: service, id: id) }
    private var moment: Int64 { Int64(session.serverTime.timeIntervalSince1970) }

    /// Carries out what is due. An entry that fails is due again at the next sync.
    func run(_ description: VaultDescription) async throws(VaultError) {
        guard var state = try service.state(id), state.role != nil else { return }
        try await sendSeen(state)
        if let until = description.recoveringUntil, until > session.serverTime {
            return try await endRecovery(state)
        }
        guard state.role == .manager, (try? state.checkWritable(repairs: true)) != nil else { return }
        do throws(VaultError) {
            try await rotateWhenDue(state)
            try await sealWhenDue()
            state = try service.known(id)
            try await revokeExpired(state)
            try await sendBoxes(description.members ?? [], state)
        } catch {
            // Another manager's device has been faster, or the server limits the rate.
            let passing: [SharedVaultError] = [.busy, .recovering, .stopped, .missingKey, .updateNeeded]
            guard case .shared(let reason) = error, passing.contains(reason) else {
                guard case .refused = error else { throw error }
                return
            }
        }
    }

    // MARK: Heads

    /// Signs the head for the other members, if it has moved.
    private func sendSeen(_ state: SharedVaultState) async throws(VaultError) {
        let head = state.log.head
        guard state.findings.sentSeen != head.number.value, state.findings.fork == nil, state.own != nil,
            let statement = try? MemberStatement(.seen, by: state.signer, head)
        else { return }
        let token = try service.token
        do throws(APIError) {
            try await session.api.putSeenHead(
                id, VaultHead(number: head.number.value, hash: head.hash.bytes),
                signature: statement.signature.bytes, token)
        } catch {
            if error.isRefusal { return }
            throw VaultError(ofShared: error)
        }
        try service.note(id) { $0.sentSeen = head.number.value }
    }

    /// Ends the period in which entries are put back. Only the owner's device does so.
    private func endRecovery(_ state: SharedVaultState) async throws(VaultError) {
        // Another device of the owner may have entries that are not put back yet.
        guard state.own?.id == state.log.owner, state.record.head?.number ?? 0 <= state.log.head.number.value else {
            return
        }
        let head = VaultHead(number: state.log.head.number.value, hash: state.log.head.hash.bytes)
        let token = try service.token
        do throws(APIError) { try await session.api.endRecovery(id, head, token) } catch {
            // Another member has put further entries back: the next sync takes them.
            guard error.isRefusal else { throw VaultError(ofShared: error) }
        }
    }

    // MARK: Keys

    /// Rotates after a leave or a change of keys, at most once an hour.
    private func rotateWhenDue(_ state: SharedVaultState) async throws(VaultError) {
        guard state.log.isRotationDue, moment - (state.findings.rotatedAt ?? 0) >= Self.rotationInterval else { return }
        try await rotate()
        try service.note(id) { $0.rotatedAt = moment }
    }

    func rotate() async throws(VaultError) {
        try await sending.append(repairs: true) { state, time throws(VaultError) in
            try EntrySending.draftOfGeneration(state, at: time) { .rotate($0) }
        }
    }

    /// Sends boxes to members that lack one, and sealed previous keys that the server lacks.
    private func sendBoxes(_ seats: [VaultSeat], _ state: SharedVaultState) async throws(VaultError) {
        guard let key = state.presentKey else { return }
        let lacking = Set(seats.filter { $0.boxMissing == true }.map(\.id))
        let present = state.log.currentGeneration
        var boxes: [VaultKeyBox] = []
        for member in state.log.presentMembers where lacking.contains(MemberID(member.id)) {
            guard
                let box = try? GenerationBox.seal(
                    key, present.number, for: member.id, member.keys.agreement, of: state.log.vault)
            else { throw .unreadable }
            boxes.append(VaultKeyBox(member: MemberID(member.id), box: Base64Bytes(box)))
        }
        let stored = try session.stored { try session.store.previousKeys(of: id) }
        var previous: [VaultPreviousKey] = []
        for number in state.keys.numbers {
            guard let next = number.next, let later = state.keys[next], let earlier = state.keys[number],
                let generation = state.log.generation(number),
                stored[next].flatMap({ later.openPrevious($0, of: state.log.vault, generation) }) == nil,
                let sealed = try? later.sealPrevious(earlier, of: state.log.vault, number: next)
            else { continue }
            previous.append(VaultPreviousKey(generation: next.value, key: sealed))
        }
        guard !boxes.isEmpty || !previous.isEmpty else { return }
        let token = try service.token
        try await service.call { [boxes, previous] api throws(APIError) in
            try await api.putVaultBoxes(id, generation: present.number.value, boxes, previous, token)
        }
        try service.take([], previous, id)
    }

    // MARK: Seals

    /// Seals entries that cut writers off, once they are a minute old: the device that appended them may be lost.
    private func sealWhenDue() async throws(VaultError) {
        let state = try service.known(id)
        let unsealed = state.log.unsealed
        let moment = moment
        try service.note(id) { findings in
            let known = findings.unsealedSince ?? [:]
            let since = unsealed.map { number in (number.value, known[number.value] ?? moment) }
            findings.unsealedSince = since.isEmpty ? nil : Dictionary(uniqueKeysWithValues: since)
        }
        let since = try service.known(id).findings.unsealedSince ?? [:]
        for number in unsealed where moment - (since[number.value] ?? moment) >= Self.sealDelay {
            try await seal(number)
        }
    }

    /// Seals all entries that cut writers off and have no list.
    func sealAll() async throws(VaultError) {
        for number in try service.known(id).log.unsealed { try await seal(number) }
    }

    /// Lists the edits that count of the writers that an entry has cut off: the standing ones that this device had
    /// accepted before it had the entry.
    private func seal(_ number: EntryNumber) async throws(VaultError) {
        try await sending.append { state, time throws(VaultError) in
            guard state.log.unsealed.contains(number) else { throw .shared(.rejected("nothingToSeal")) }
            let list = try list(number, state)
            var draft = try EntrySending.draft(.seal(Seal(entry: number, list)), state, at: time)
            draft.request.list = Base64Bytes(list.bytes)
            draft.list = list
            return draft
        }
    }

    private func list(_ number: EntryNumber, _ state: SharedVaultState) throws(VaultError) -> SealList {
        var edits: [VaultItemID: EditMark] = [:]
        let sealing = try service.sealing(state)
        let store = try service.owners.parts(of: .vault(id)).scope.store
        try session.stored {
            try store.forEachAccepted { item in
                guard let judgedAt = item.judgedAt, judgedAt < Int64(number.value),
                    let (author, head, mark) = sealing.mark(of: item.content, item.id),
                    state.log.cut(of: author, at: head) == number
                else { return }
                edits[VaultItemID(item.id)] = mark
            }
        }
        return SealList(edits)
    }

    // MARK: Invitations

    /// Closes expired invitations in the log, which ends joins that a server dates back.
    private func revokeExpired(_ state: SharedVaultState) async throws(VaultError) {
        let now = service.now
        let expired = state.log.invitations.values.filter { invitation in
            !invitation.isClosed && invitation.joins < invitation.terms.uses && invitation.terms.expiry < now
        }
        for invitation in expired.prefix(Self.revocations) {
            let id = invitation.terms.id
            try await sending.append { state, time throws(VaultError) in
                try EntrySending.draft(.revoke(id), state, at: time)
            }
        }
    }
}
