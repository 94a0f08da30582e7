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
    /// True when a person waits for the result.
    var isAsked = false

    /// The age of an unsealed entry, in seconds, from which on any manager's device seals it.
    private static let sealDelay: Int64 = 60
    /// The interval between two automatic rotations, in seconds.
    private static let rotationInterval: Int64 = 3_600
    /// The maximum number of boxes, and of previous keys, in one request.
    private static let boxLimit = 40
    /// The maximum number of expired invitations that one call closes.
    private static let revocations = 4

    private var session: VaultSession { service.session }
    private var sending: EntrySending { EntrySending(service: service, id: id, isAutomatic: !isAsked) }
    private var moment: Int64 { service.moment }

    /// Carries out what is due. A step that fails is due again at the next sync, and prevents no other step.
    func run(_ description: VaultDescription) async throws(VaultError) {
        guard let state = try service.state(id), state.role != nil else { return }
        let isRecovering = description.recoveringUntil.map { $0 > session.serverTime } ?? false
        try noteEvidence(isRecovering)
        try service.keepName(state)
        try await step { () async throws(VaultError) in try await sendSeen(state) }
        if isRecovering {
            return try await step { () async throws(VaultError) in try await endRecovery(state, description) }
        }
        if state.findings.isRekeyDue == true {
            try await step { () async throws(VaultError) in try await rekeyWhenSent() }
        }
        guard state.role == .manager, (try? state.checkWritable(repairs: true)) != nil else { return }
        try await step { () async throws(VaultError) in try await sealWhenDue() }
        try await step { () async throws(VaultError) in try await rotateWhenDue() }
        try await step { () async throws(VaultError) in try await revokeExpired() }
        try await step { () async throws(VaultError) in try await sendBoxes(description.members ?? []) }
        try await step { () async throws(VaultError) in try await countOpenings() }
    }

    /// Carries out one step. Another manager's device may be faster, or the server may limit the rate.
    private func step(_ body: () async throws(VaultError) -> Void) async throws(VaultError) {
        do throws(VaultError) { try await body() } catch {
            guard error.isOfVaultAlone else { throw error }
        }
    }

    /// Stores the findings about versions of items: those that never count, and members whose edits name entries that
    /// the log does not have.
    private func noteEvidence(_ isRecovering: Bool) throws(VaultError) {
        let found = service.evidence.take(id)
        guard let state = try service.state(id) else { return }
        var refused = state.findings.refused ?? []
        for (item, isRefused) in found.refusals { if isRefused { refused.insert(item) } else { refused.remove(item) } }
        let store = try service.owners.parts(of: .vault(id)).scope.store
        let deleted = try session.stored { try refused.filter { try store.tombstone($0) != nil } }
        refused.subtract(deleted)
        try service.note(id) { $0.refused = refused.isEmpty ? nil : refused }
        // After a restored backup the log lacks entries for a while.
        let others = found.heads.filter { _, head in
            let place = state.log.place(of: head)
            return place == .diverged || place == .unknown && state.findings.needsUpdate != true
        }
        guard !others.isEmpty, !isRecovering else { return }
        try service.note(id) { findings in
            var known = findings.otherHistories ?? [:]
            for (member, head) in others { known[MemberID(member)] = head.number.value }
            findings.otherHistories = known
        }
    }

    // MARK: Heads

    /// Signs the head for the other members, if it has moved or a restored server has an earlier one.
    private func sendSeen(_ state: SharedVaultState) async throws(VaultError) {
        let head = state.log.head
        guard let own = state.own, state.findings.fork == nil else { return }
        let shown = state.seats.first { $0.id == MemberID(own.id) }?.seen?.number ?? 0
        guard state.findings.sentSeen != head.number.value || shown < head.number.value,
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

    /// Ends the period in which entries are put back. Only a device of the owner by the server's statement does so: the
    /// server can have lost a hand-over.
    private func endRecovery(_ state: SharedVaultState, _ description: VaultDescription) async throws(VaultError) {
        // Another device of the owner may have entries that are not put back yet.
        guard description.owner, state.record.highestNumber <= state.log.head.number.value,
            state.findings.fork == nil
        else { return }
        let head = VaultHead(number: state.log.head.number.value, hash: state.log.head.hash.bytes)
        let token = try service.token
        do throws(APIError) { try await session.api.endRecovery(id, head, token) } catch {
            // Another member has put further entries back: the next sync takes them.
            guard error.isRefusal else { throw VaultError(ofShared: error) }
        }
    }

    // MARK: Keys

    /// Rotates after a leave or a change of keys, at most once an hour, and only with the present key: the next one
    /// has to lead to it.
    private func rotateWhenDue() async throws(VaultError) {
        let state = try service.known(id)
        guard state.log.isRotationDue, state.presentKey != nil,
            !isRecent(state.findings.rotatedAt, at: moment, within: Self.rotationInterval)
        else { return }
        do throws(VaultError) {
            try await sending.append { state, time throws(VaultError) in
                // Another manager's device has been faster.
                guard state.log.isRotationDue else { return nil }
                return try EntrySending.draftOfGeneration(state, at: time, replacesMissingKey: false) { .rotate($0) }
            }
        } catch {
            // The key of an entry that may be on the server stays in the account's record.
            if case .unavailable = error { try service.note(id) { $0.rotatedAt = moment } }
            throw error
        }
        try service.note(id) { $0.rotatedAt = moment }
    }

    func rotate(replacesMissingKey: Bool) async throws(VaultError) {
        try await sending.append(repairs: true) { state, time throws(VaultError) in
            try EntrySending.draftOfGeneration(state, at: time, replacesMissingKey: replacesMissingKey) { .rotate($0) }
        }
    }

    /// Replaces this member's keys by the pair that the record has for it. The pair is on the server before.
    ///
    /// The server needs the password key. A process that has not derived it leaves the change to a later one.
    func rekey() async throws(VaultError) {
        guard let proof = try session.open.password.passwordKey else { return }
        try await sending.append(repairs: true) { state, time throws(VaultError) in
            guard let keys = state.record.latestKeys, !state.log.isUsed(keys.publicKeys) else { return nil }
            let signer = try state.signer
            var draft = try EntrySending.draft { () throws(EntryRejection) in
                try EntryWriter.rekey(to: keys, by: signer, after: state.log, at: time)
            }
            draft.request.currentPasswordKey = proof
            return draft
        }
        // Another device can have been lost in the meantime.
        try service.note(id) { if $0.needsFreshKeys != true { $0.isRekeyDue = nil } }
    }

    /// Continues an interrupted change of keys. New keys are sent by the next round of the account first.
    private func rekeyWhenSent() async throws(VaultError) {
        try service.prepareKeys(try service.known(id))
        guard try session.stored({ try session.store.change(ItemID(id.uuid)) }) == nil else { return }
        try await rekey()
    }

    /// Sends boxes to members that lack one, and sealed previous keys that the server lacks.
    private func sendBoxes(_ seats: [VaultSeat]) async throws(VaultError) {
        let state = try service.known(id)
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
        // A server that has lost boxes has lost previous keys, too.
        if !lacking.isEmpty { try await LogUpdate(service: service, id: id).comparePreviousKeys() }
        var previous = try previousKeys(state)
        while !boxes.isEmpty || !previous.isEmpty {
            let token = try service.token
            let (some, others) = (Array(boxes.prefix(Self.boxLimit)), Array(previous.prefix(Self.boxLimit)))
            try await service.call { api throws(APIError) in
                try await api.putVaultBoxes(id, generation: present.number.value, some, others, token)
            }
            boxes.removeFirst(some.count)
            previous.removeFirst(others.count)
            var sealed: [GenerationNumber: [UInt8]] = [:]
            for key in others { if let number = GenerationNumber(key.generation) { sealed[number] = key.key.bytes } }
            try service.takePreviousKeys(sealed, id)
            service.lostPreviousKeys[id]?.subtract(sealed.keys)
        }
    }

    /// The sealed previous keys that this device does not have, or that the server lacks.
    private func previousKeys(_ state: SharedVaultState) throws(VaultError) -> [VaultPreviousKey] {
        let stored = try session.stored { try session.store.previousKeys(of: id) }
        let lost = service.lostPreviousKeys[id] ?? []
        var previous: [VaultPreviousKey] = []
        for number in state.keys.numbers {
            guard let next = number.next, let later = state.keys[next], let earlier = state.keys[number],
                let generation = state.log.generation(number)
            else { continue }
            let known = stored[next].flatMap { sealed in
                later.openPrevious(sealed, of: state.log.vault, generation) == nil ? nil : sealed
            }
            guard known == nil || lost.contains(next),
                let sealed = known ?? (try? later.sealPrevious(earlier, of: state.log.vault, number: next))
            else { continue }
            previous.append(VaultPreviousKey(generation: next.value, key: sealed))
        }
        return previous
    }

    // MARK: Seals

    /// Seals entries that cut writers off, once they are a minute old: the device that appended them may be lost.
    private func sealWhenDue() async throws(VaultError) {
        let state = try service.known(id)
        let moment = moment
        let cuts = try witnessed(state).compactMap { author in state.log.lastCuts[author].map { (author, $0.value) } }
        try service.note(id) { findings in
            let known = findings.unsealedSince ?? [:]
            // A time in the future is that of a wrong clock.
            let since = cuts.map { _, cut in (cut, min(known[cut] ?? moment, moment)) }
            findings.unsealedSince = since.isEmpty ? nil : Dictionary(since) { first, _ in first }
        }
        let since = try service.known(id).findings.unsealedSince ?? [:]
        guard canList(state) else { return }
        for (author, cut) in cuts where !isRecent(since[cut], at: moment, within: Self.sealDelay) {
            try await sealAlone(author)
        }
    }

    /// Seals all writers that were cut off and that no manager has sealed, if this device can open their items.
    func sealAll() async throws(VaultError) {
        let state = try service.known(id)
        guard canList(state) else { return }
        for author in try witnessed(state) { try await sealAlone(author) }
    }

    /// The unsealed writers whose edits this device had before they were cut off, without a gap. A device that came
    /// later would omit edits that count: it waits for another manager's device.
    private func witnessed(_ state: SharedVaultState) throws(VaultError) -> [VaultLog.MemberID] {
        guard let since = state.findings.witnessedSince else { return [] }
        let sealing = try service.sealing(state)
        let store = try service.owners.parts(of: .vault(id)).scope.store
        let incomplete = try session.stored {
            var incomplete = try store.authorsAwaitingSeals()
            // The server no longer has an item whose deletion waits here for a person.
            for held in try store.heldDeletions() where !held.isRefusal {
                guard let item = try store.item(held.id), let mark = sealing.mark(of: item.content, item.id) else {
                    continue
                }
                incomplete.insert(mark.author.bytes)
            }
            return incomplete
        }
        return state.log.unsealed.filter { author in
            !incomplete.contains(author.bytes) && !lacksOwnList(of: author, state, sealing)
                && state.log.lastCuts[author].map { $0.value > since } ?? false
        }
    }

    /// True when this device lacks the list that a new one replaces: it would not repeat the marks.
    func lacksOwnList(of author: VaultLog.MemberID, _ state: SharedVaultState, _ sealing: VaultSealing) -> Bool {
        state.log.seals(of: author).contains { seal in
            seal.manager == state.own?.id && sealing.lists[seal.seal] == nil
        }
    }

    /// Seals one writer. A list that the server refuses, or for which the log has no room, prevents no other one.
    private func sealAlone(_ author: VaultLog.MemberID) async throws(VaultError) {
        do throws(VaultError) { try await seal(author) } catch {
            // The next sync tries again.
            if case .unavailable = error { throw error }
            guard error.isOfVaultAlone else { throw error }
        }
    }

    /// True when this device can open all items. A list without the others would omit edits that count.
    func canList(_ state: SharedVaultState) -> Bool {
        state.presentKey != nil && state.brokenGenerations.isEmpty
    }

    /// Lists the edits that count of a writer that entries have cut off.
    private func seal(_ author: VaultLog.MemberID) async throws(VaultError) {
        try await sending.append { state, time throws(VaultError) in
            // Another manager's device has been faster.
            guard try witnessed(state).contains(author) else { return nil }
            return try Self.draft(of: author, try list(author, state), state, at: time)
        }
    }

    private static func draft(
        of author: VaultLog.MemberID, _ list: SealList, _ state: SharedVaultState, at time: EntryTime
    ) throws(VaultError) -> EntrySending.Draft {
        var draft = try EntrySending.draft(.seal(Seal(of: author, list)), state, at: time)
        draft.request.list = Base64Bytes(list.bytes)
        draft.list = list
        return draft
    }

    /// Seals a writer with the list that a person has agreed to, although this device has not witnessed all edits.
    func seal(_ proposal: SealProposal) async throws(VaultError) {
        let author = VaultLog.MemberID(proposal.member)
        try await sending.append { state, time throws(VaultError) in
            // Another manager's device has been faster.
            guard state.log.unsealed.contains(author) else { throw .shared(.nothingToSeal) }
            // The person has not seen the edits before the later cut.
            guard state.log.lastCuts[author] == proposal.cut else { throw .shared(.busy) }
            return try Self.draft(of: author, proposal.list, state, at: time)
        }
    }

    /// The standing edits that this device had accepted before the entry that cut their author off, or that a list
    /// contains. Of the list that this one replaces, marks of items stay that this device does not have.
    /// - Parameter waiting: The edits that a person adds.
    func list(
        _ author: VaultLog.MemberID, _ state: SharedVaultState, adding waiting: [VaultItemID: EditMark] = [:]
    ) throws(VaultError) -> SealList {
        let sealing = try service.sealing(state)
        let store = try service.owners.parts(of: .vault(id)).scope.store
        let seals = state.log.seals(of: author)
        var edits: [VaultItemID: EditMark] = [:]
        try session.stored {
            try store.forEachAccepted { item in
                guard let edit = sealing.mark(of: item.content, item.id), edit.author == author,
                    let cut = state.log.cut(of: author, at: edit.head)
                else { return }
                // The server no longer has an item whose deletion waits here for a person.
                if try store.holdsDeletion(of: item.id) { return }
                let id = VaultItemID(item.id)
                let isHeld = item.judgedAt.map { $0 < Int64(cut.value) } ?? false
                let isListed = seals.contains { seal in
                    seal.number > cut && sealing.lists[seal.seal]?.edits[id] == edit.mark
                }
                if isHeld || isListed { edits[id] = edit.mark }
            }
            edits.merge(waiting) { _, later in later }
            // A server rejects lists with more edits than the vault has items.
            let limit = service.descriptions[id].map { Int(clamping: $0.usage.items) } ?? 0
            try Self.add(unsentIn: store, of: author, sealing, to: &edits, limit: limit)
            let replaced = seals.first { $0.manager == state.own?.id }.flatMap { sealing.lists[$0.seal] }
            for (item, mark) in replaced?.edits ?? [:] where edits.count < limit && edits[item] == nil {
                let id = ItemID(item)
                if try store.item(id) == nil, try store.tombstone(id) == nil { edits[item] = mark }
            }
        }
        return SealList(edits)
    }

    /// Adds accepted edits that a restored server has lost, and that this device has not sent again yet.
    private static func add(
        unsentIn store: Store, of author: VaultLog.MemberID, _ sealing: VaultSealing,
        to edits: inout [VaultItemID: EditMark], limit: Int
    ) throws {
        // An own edit is signed again by the present key.
        if sealing.own.contains(author) { return }
        try store.forEachChange { change in
            let item = VaultItemID(change.id)
            guard edits[item] == nil, edits.count < limit, let content = change.content,
                let edit = sealing.mark(of: content, change.id), edit.author == author,
                sealing.log.cut(of: author, at: edit.head) != nil,
                sealing.rejection(ofChange: content, change.id)?.isOpen ?? true
            else { return }
            edits[item] = edit.mark
        }
    }

    // MARK: Invitations

    /// Fetches the numbers of openings, while an invitation is open.
    private func countOpenings() async throws(VaultError) {
        guard try !service.known(id).log.openInvitations.isEmpty else {
            service.openings[id] = nil
            return
        }
        let token = try service.token
        let listed = try await service.call { api throws(APIError) in try await api.listInvitations(id, token) }
        let openings = Dictionary(listed.map { ($0.id, Int(clamping: $0.openings)) }) { first, _ in first }
        guard openings != service.openings[id] else { return }
        service.openings[id] = openings
        service.notify([id])
    }

    /// Closes expired invitations in the log, which ends joins that a server dates back. The server's time counts only
    /// if this device's clock confirms it.
    private func revokeExpired() async throws(VaultError) {
        let now = service.now
        guard session.api.clock.confirms(session.settings.now()) else { return }
        let expired = try service.known(id).log.invitations.values.filter { $0.isExpired(at: now) }
        for invitation in expired.prefix(Self.revocations) {
            let id = invitation.terms.id
            try await sending.append { state, time throws(VaultError) in
                guard state.log.invitations[id]?.isExpired(at: now) ?? false else { return nil }
                return try EntrySending.draft(.revoke(id), state, at: time)
            }
        }
    }
}

extension VaultInvitation {
    /// True for one that time alone has ended.
    fileprivate func isExpired(at now: EntryTime) -> Bool {
        !isClosed && joins < terms.uses && terms.expiry < now
    }
}
