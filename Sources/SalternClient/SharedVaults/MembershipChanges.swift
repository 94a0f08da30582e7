internal import Cryptography
internal import Foundation
internal import VaultLog

/// Changes of members, roles and ownership that a person asks for.
struct MembershipChanges {
    let service: SharedVaultService
    let id: SharedVaultID

    /// The attempts to cut writers off that wait for their last edits.
    private static let attempts = 3

    private var sending: EntrySending { EntrySending(service: service, id: id) }
    private var upkeep: VaultUpkeep { VaultUpkeep(service: service, id: id, isAsked: true) }

    private func append(
        _ payload: (SharedVaultState) throws(VaultError) -> EntryPayload
    ) async throws(VaultError) {
        try await service.appending(to: id) { () async throws(VaultError) in
            _ = try await sending.append { state, time throws(VaultError) in
                try EntrySending.draft(try payload(state), state, at: time)
            }
        }
        await sendRecord()
    }

    /// Appends an entry that cuts writers off, behind their edits on the server.
    /// - Parameters:
    ///   - needsItems: True to append nothing without the edits.
    ///   - body: Appends the entry on the condition of a revision of the items.
    private func cutting(
        needsItems: Bool, _ body: (Revision?) async throws(VaultError) -> Void
    ) async throws(VaultError) {
        for _ in 1..<Self.attempts {
            if let failure = try await syncItems(), needsItems { throw failure }
            let revision = try service.revision(of: id)
            do throws(VaultError) {
                return try await service.holding { () async throws(VaultError) in try await body(revision) }
            } catch .shared(.busy) {}
        }
        // Writing cannot block the change, so the last attempt has no condition.
        if let failure = try await syncItems(), needsItems { throw failure }
        try await service.appending(to: id) { () async throws(VaultError) in try await body(nil) }
    }

    private func member(_ id: MemberID, _ state: SharedVaultState) throws(VaultError) -> VaultLog.MemberID {
        let member = VaultLog.MemberID(id)
        guard state.log.members[member]?.role != nil else { throw .shared(.unknownMember) }
        return member
    }

    /// Sends and fetches the edits of this vault, as far as possible. A failure of one vault prevents no change of its
    /// members, which may be what ends the failure.
    /// - Returns: The failure.
    private func syncItems() async throws(VaultError) -> VaultError? {
        var ofVault: VaultError?
        let failure = try await failure { () async throws(VaultError) in
            ofVault = try await service.syncing.sync(only: [.vault(id)]).vaultFailures[id]
            if ofVault != nil { return }
            // An edit that the sync has sent has a later revision than edits that came after its fetching.
            try await service.fetchItems(id)
        }
        return ofVault ?? failure
    }

    /// Fetches the edits and the log of this vault alone. A sync would refresh all vaults.
    /// - Returns: The failure.
    private func fetchItems() async throws(VaultError) -> VaultError? {
        try await failure { () async throws(VaultError) in
            // An entry can cut a writer off, so the edits come first. It can also let a version count.
            try await service.fetchItems(id)
            try await SharedVaultRefresh(service: service).catchUp(id)
            try await service.fetchItems(id)
            try await service.holding { () async throws(VaultError) in try service.noteWitness(id) }
        }
    }

    /// Returns the error of a step that the change can do without.
    /// - Throws: An error that ends the change, too.
    private func failure(_ step: () async throws(VaultError) -> Void) async throws(VaultError) -> VaultError? {
        do throws(VaultError) {
            try await step()
            return nil
        } catch {
            switch error {
            case .locked, .sessionEnded, .store: throw error
            default: if error.isCancellation { throw error }
            }
            return error
        }
    }

    /// Sends the heads and keys that a change has put into the account's record. The next sync does so otherwise.
    private func sendRecord() async { try? await service.sendAccountItems() }

    // MARK: Members

    func setRole(_ member: MemberID, to role: SharedRole) async throws(VaultError) {
        let state = try service.known(id)
        if state.log.members[VaultLog.MemberID(member)]?.role == role.role { return }
        func append(_ revision: Revision?) async throws(VaultError) {
            _ = try await sending.append { state, time throws(VaultError) in
                let member = try self.member(member, state)
                // Another device has been faster.
                if state.log.members[member]?.role == role.role { return nil }
                var draft = try EntrySending.draft(.role(member, role.role), state, at: time)
                draft.request.ifRevision = revision
                return draft
            }
        }
        // The edits that are on the server before a writer is lowered count.
        if role == .reader {
            try await cutting(needsItems: true, append)
        } else {
            try await service.appending(to: id) { () async throws(VaultError) in try await append(nil) }
        }
        await sendRecord()
        try await sealNow()
    }

    /// Removes members, begins a generation and seals. Any manager's sync continues after an interruption, and so does
    /// a repeated call: members that are gone stay gone.
    func remove(_ members: Set<MemberID>, replacingMissingKey: Bool) async throws(VaultError) {
        let known = try service.known(id).log
        for member in members where known.members[VaultLog.MemberID(member)] == nil { throw .shared(.unknownMember) }
        try await cutting(needsItems: false) { revision throws(VaultError) in
            _ = try await sending.append(repairs: true) { state, time throws(VaultError) in
                let ids = members.map { VaultLog.MemberID($0) }.filter { state.log.members[$0]?.role != nil }
                if ids.isEmpty { return nil }
                var draft = try EntrySending.draftOfGeneration(
                    state, at: time, replacesMissingKey: replacingMissingKey
                ) { generation in
                    EntryPayload.removing(Set(ids), generation)
                }
                draft.request.ifRevision = revision
                return draft
            }
        }
        await sendRecord()
        try await sealNow()
    }

    /// Seals the writers that were cut off. What fails is due at the next sync.
    func sealNow() async throws(VaultError) {
        do throws(VaultError) {
            // Edits that arrive only now wait for a device that had them before the cut.
            try await service.fetchItems(id)
            try await service.holding { () async throws(VaultError) in
                guard try service.known(id).role == .manager else { return }
                try await upkeep.sealAll()
            }
        } catch {
            guard error.isOfVaultAlone else { throw error }
        }
    }

    /// Lists the edits of an unsealed writer for a person, who decides about them: those that this device had before
    /// the cut, and those that only the server reports as older.
    func proposeSeal(of member: MemberID) async throws(VaultError) -> SealProposal {
        guard try service.known(id).role == .manager else { throw .shared(.notPermitted) }
        // A seal without the last edits on the server would withdraw them.
        let report = try await service.syncing.sync(only: [.vault(id)])
        if let failure = report.vaultFailures[id] { throw failure }
        let author = VaultLog.MemberID(member)
        let cut = try unsealedCut(author)
        let waiting = try await editsAwaitingSeal(of: author)
        guard try unsealedCut(author) == cut else { throw .shared(.busy) }
        let state = try service.known(id)
        let sealing = try service.sealing(state)
        guard !upkeep.lacksOwnList(of: author, state, sealing) else { throw .shared(.listMissing) }
        let seals = state.log.seals(of: author)
        let unseen = waiting.filter { item, mark in
            !seals.contains { sealing.lists[$0.seal]?.edits[item] == mark }
        }
        return SealProposal(
            member: member, list: try upkeep.list(author, state, adding: waiting), unseenCount: unseen.count,
            isComplete: upkeep.canList(state), cut: cut)
    }

    private func unsealedCut(_ author: VaultLog.MemberID) throws(VaultError) -> EntryNumber {
        let log = try service.known(id).log
        guard let cut = log.lastCuts[author], log.unsealed.contains(author) else { throw .shared(.nothingToSeal) }
        return cut
    }

    /// Fetches the versions that were set aside until the seal of their author, and returns the edits that would count.
    private func editsAwaitingSeal(
        of author: VaultLog.MemberID
    ) async throws(VaultError) -> [VaultItemID: EditMark] {
        let store = try service.owners.parts(of: .vault(id)).scope.store
        let session = service.session
        var edits: [VaultItemID: EditMark] = [:]
        for item in try session.stored({ try store.itemsAwaitingSeal(of: author.bytes) }) {
            let server = LiveSyncServer(
                session.api, .vault(id), token: try service.token, retries: session.settings.retries)
            let version: ItemState?
            do throws(APIError) { version = try await server.item(item) } catch { throw VaultError(ofShared: error) }
            let known = try session.stored { try store.item(item) }
            if let version,
                let mark = try service.sealing(try service.known(id)).markAwaitingSeal(
                    of: version, by: author, known: known)
            {
                edits[VaultItemID(item)] = mark
            }
        }
        return edits
    }

    /// Seals a writer as a person has decided.
    func seal(_ proposal: SealProposal) async throws(VaultError) {
        try await service.appending(to: id) { () async throws(VaultError) in try await upkeep.seal(proposal) }
        await sendRecord()
    }

    func leave(discardingUnsentEdits: Bool) async throws(VaultError) {
        // Unsent edits would stay on this device.
        _ = try await syncItems()
        // Another device of the account has left, or a manager has removed this member.
        guard try service.known(id).role != nil else { return }
        let unsent = discardingUnsentEdits ? 0 : try service.unsentCount(of: id)
        guard unsent == 0 else { throw .unsentEdits(count: unsent) }
        try await service.appending(to: id) { () async throws(VaultError) in
            _ = try await sending.append(leaves: true) { state, time throws(VaultError) in
                try EntrySending.draft(.leave, state, at: time)
            }
        }
        try service.noteEnd(of: id)
        await sendRecord()
    }

    // MARK: Invitations and keys

    func revoke(_ invitation: InvitationID) async throws(VaultError) {
        try await append { state throws(VaultError) in
            let id = VaultLog.InvitationID(invitation)
            guard let known = state.log.invitations[id], !known.isClosed else { throw .shared(.unknownInvitation) }
            return .revoke(id)
        }
    }

    func rotate(replacingMissingKey: Bool) async throws(VaultError) {
        try await service.appending(to: id) { () async throws(VaultError) in
            try await upkeep.rotate(replacesMissingKey: replacingMissingKey)
        }
        await sendRecord()
    }

    // MARK: Ownership

    func offer(to member: MemberID?) async throws(VaultError) {
        try await append { state throws(VaultError) in
            .offer(try member.map { member throws(VaultError) in try self.member(member, state) })
        }
    }

    func acceptOffer() async throws(VaultError) {
        try await service.appending(to: id) { () async throws(VaultError) in
            _ = try await sending.append(
                send: { api, draft, token throws(APIError) in
                    _ = try await api.acceptOwnership(id, draft.entry.bytes, token)
                },
                { state, time throws(VaultError) in
                    guard let offer = state.log.offer, offer.to == state.own?.id else { throw .shared(.noOffer) }
                    return try EntrySending.draft(.accept(offer.number), state, at: time)
                })
        }
        await sendRecord()
    }

    func delete() async throws(VaultError) {
        let state = try service.known(id)
        guard state.own?.id == state.log.owner, !state.findings.isEnded || state.findings.isDeletionRequested == true
        else { throw .shared(.notPermitted) }
        let wasRequested = state.findings.isDeletionRequested ?? false
        // The process can end before the reply.
        try service.note(id) { $0.isDeletionRequested = true }
        let token = try service.token
        do throws(APIError) { try await service.session.api.deleteVault(id, token) } catch {
            let isMissing = error.code == .notFound
            if !isMissing || !wasRequested {
                // The vault exists after a rejection, so earlier requests without a reply have not deleted it either.
                let isUndone = wasRequested ? error.isRefusal : !error.mayBeDone
                if isUndone { try service.note(id) { $0.isDeletionRequested = nil } }
                guard isMissing else { throw VaultError(ofShared: error) }
                // Another owner can have removed this member.
                try service.noteEnd(of: id)
                throw .shared(.notPermitted)
            }
        }
        try await service.forget(id)
        await sendRecord()
    }

    // MARK: Disclosed keys

    /// Replaces this account's keys after they may have been disclosed. The pair is another one at each call, because
    /// an earlier one can be disclosed, too.
    func replaceKeys() async throws(VaultError) {
        guard let state = try service.state(id), state.role != nil else { return }
        try service.prepareKeys(state, isFresh: true)
        try await service.sendRecord(id)
        // The edits by the former keys that are on the server before the change count. A device that could not fetch
        // them leaves the change to a later sync.
        guard try await fetchItems() == nil, try service.known(id).findings.witnessedSince != nil else { return }
        try await service.appending(to: id) { () async throws(VaultError) in try await upkeep.rekey() }
        if try service.known(id).role == .manager {
            do throws(VaultError) {
                try await service.appending(to: id) { () async throws(VaultError) in
                    guard try service.known(id).log.isRotationDue else { return }
                    try await upkeep.rotate(replacesMissingKey: false)
                }
            } catch {
                // The rotation is due, and the next sync of a manager does it.
                guard error.isOfVaultAlone else { throw error }
            }
            try await sealNow()
        }
        await sendRecord()
    }
}

extension SharedVaultService {
    /// Records that the keys in all vaults are to be replaced, before a lost device is shut out or the data key is
    /// replaced.
    func noteDisclosedKeys() throws(VaultError) {
        // The log of a vault may not have arrived yet.
        for id in try recordIDs() {
            let hasEnded = try state(id).map { $0.role == nil } ?? false
            try note(id) {
                if !hasEnded { $0.isRekeyDue = true }
                $0.needsFreshKeys = true
            }
        }
    }

    /// Replaces this account's keys in all vaults. Where it fails, it stays due for the next sync, and
    /// ``SharedVaultProblem/keysDue`` reports it.
    func replaceAllKeys() async throws(VaultError) {
        try noteDisclosedKeys()
        for id in try ids() {
            do throws(VaultError) { try await MembershipChanges(service: self, id: id).replaceKeys() } catch {
                switch error {
                case .locked, .sessionEnded, .store: throw error
                default: continue
                }
            }
        }
    }

    /// Makes a pair of keys that no entry contains yet, unless the record has one.
    /// - Parameter isFresh: True for another pair than the one of the record. While one is due, it always is.
    func prepareKeys(_ state: SharedVaultState, isFresh: Bool = false) throws(VaultError) {
        let isDue = try findings(of: state.id).needsFreshKeys == true
        if !isFresh && !isDue || !state.record.hasRoomForKeys, let latest = state.record.latestKeys,
            !state.log.isUsed(latest.publicKeys)
        {
            return
        }
        guard let keys = try? MemberPrivateKeys.generate() else { throw .unreadable }
        try update(state.id) { $0.add(keys) }
        try note(state.id) { $0.needsFreshKeys = nil }
    }

    /// The number of edits of a vault that are not on the server.
    func unsentCount(of id: SharedVaultID) throws(VaultError) -> Int {
        let store = try owners.parts(of: .vault(id)).scope.store
        return try session.stored { try store.changeCount() }
    }

    /// The vault's revision up to which this device has the items; nil when it is unknown.
    func revision(of id: SharedVaultID) throws(VaultError) -> Revision? {
        let store = try owners.parts(of: .vault(id)).scope.store
        return try session.stored { try store.highestRevision() }
    }
}
