internal import Cryptography
internal import Foundation
internal import VaultLog

/// Changes of members, roles and ownership that a person asks for.
struct MembershipChanges {
    let service: SharedVaultService
    let id: SharedVaultID

    /// The attempts of a removal that wait for the last edits of the removed members.
    private static let attempts = 3

    private var sending: EntrySending { EntrySending(service: service, id: id) }

    private func append(
        _ payload: (SharedVaultState) throws(VaultError) -> EntryPayload
    ) async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            _ = try await sending.append { state, time throws(VaultError) in
                try EntrySending.draft(try payload(state), state, at: time)
            }
        }
    }

    private func member(_ id: MemberID, _ state: SharedVaultState) throws(VaultError) -> VaultLog.MemberID {
        let member = VaultLog.MemberID(id)
        guard state.log.members[member]?.role != nil else { throw .shared(.unknownMember) }
        return member
    }

    // MARK: Members

    func setRole(_ member: MemberID, to role: SharedRole) async throws(VaultError) {
        let state = try service.known(id)
        if state.log.members[VaultLog.MemberID(member)]?.role == role.role { return }
        // The edits that are on the server before a writer is lowered count.
        if role == .reader { try await service.syncing.sync() }
        try await append { state throws(VaultError) in .role(try self.member(member, state), role.role) }
        try await sealNow()
    }

    /// Removes members, begins a generation and seals. Any manager's sync continues after an interruption.
    func remove(_ members: Set<MemberID>) async throws(VaultError) {
        // The edits that are on the server before the removal count.
        for attempt in 0..<Self.attempts {
            try await service.syncing.sync()
            let revision = try service.revision(of: id)
            let isLast = attempt == Self.attempts - 1
            do throws(VaultError) {
                try await service.holding { () async throws(VaultError) in
                    _ = try await sending.append(repairs: true) { state, time throws(VaultError) in
                        var ids: Set<VaultLog.MemberID> = []
                        for member in members { ids.insert(try self.member(member, state)) }
                        var draft = try EntrySending.draftOfGeneration(state, at: time) { generation in
                            EntryPayload.removing(ids, generation)
                        }
                        // Writing cannot block a removal, so the last attempt has no condition.
                        draft.request.ifRevision = isLast ? nil : revision
                        return draft
                    }
                }
                break
            } catch .shared(.busy) where !isLast {
                continue
            }
        }
        try await sealNow()
    }

    /// Seals the entries that cut writers off.
    func sealNow() async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            guard try service.known(id).role == .manager else { return }
            try await VaultUpkeep(service: service, id: id).sealAll()
        }
    }

    func leave(discardingUnsentEdits: Bool) async throws(VaultError) {
        // Unsent edits would stay on this device.
        try await service.syncing.sync()
        let state = try service.known(id)
        if state.own?.id == state.log.owner { throw .shared(.ownerProtected) }
        if !discardingUnsentEdits { try service.refuseUnsent(id) }
        try await append { _ throws(VaultError) in .leave }
        try service.note(id) { $0.isEnded = true }
    }

    // MARK: Invitations and keys

    func revoke(_ invitation: InvitationID) async throws(VaultError) {
        try await append { state throws(VaultError) in
            let id = VaultLog.InvitationID(invitation)
            guard let known = state.log.invitations[id], !known.isClosed else { throw .shared(.unknownInvitation) }
            return .revoke(id)
        }
    }

    func rotate() async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            try await VaultUpkeep(service: service, id: id).rotate()
        }
    }

    // MARK: Ownership

    func offer(to member: MemberID?) async throws(VaultError) {
        try await append { state throws(VaultError) in
            .offer(try member.map { member throws(VaultError) in try self.member(member, state) })
        }
    }

    func acceptOffer() async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            _ = try await sending.append(
                send: { api, draft, token throws(APIError) in
                    _ = try await api.acceptOwnership(id, draft.entry.bytes, token)
                },
                { state, time throws(VaultError) in
                    guard let offer = state.log.offer, offer.to == state.own?.id else { throw .shared(.noOffer) }
                    return try EntrySending.draft(.accept(offer.number), state, at: time)
                })
        }
    }

    func delete() async throws(VaultError) {
        let state = try service.known(id)
        guard state.own?.id == state.log.owner else { throw .shared(.notPermitted) }
        try await service.holding { () async throws(VaultError) in
            let token = try service.token
            do throws(APIError) { try await service.session.api.deleteVault(id, token) } catch {
                guard error.code == .notFound else { throw VaultError(ofShared: error) }
            }
            try service.forget(id)
        }
    }

    // MARK: Lost devices

    /// Replaces this account's keys after a device was lost, and rotates if this member is a manager.
    func replaceKeys() async throws(VaultError) {
        guard let state = try service.state(id), state.role != nil else { return }
        guard let keys = try? MemberPrivateKeys.generate() else { throw .unreadable }
        try service.update(id) { $0.add(keys) }
        try await service.sendRecord(id)
        try await service.holding { () async throws(VaultError) in
            _ = try await sending.append(repairs: true) { state, time throws(VaultError) in
                let signer = try state.signer
                return try EntrySending.draft { () throws(EntryRejection) in
                    try EntryWriter.rekey(to: keys, by: signer, after: state.log, at: time)
                }
            }
            guard try service.known(id).role == .manager else { return }
            try await VaultUpkeep(service: service, id: id).rotate()
            try await VaultUpkeep(service: service, id: id).sealAll()
        }
    }
}

extension SharedVaultService {
    /// Replaces this account's keys in all vaults. A vault that fails does not prevent the others.
    /// - Throws: The first error, after all vaults.
    func replaceAllKeys() async throws(VaultError) {
        var first: VaultError?
        for id in try ids() {
            do throws(VaultError) { try await MembershipChanges(service: self, id: id).replaceKeys() } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }

    /// The vault's revision up to which this device has the items; nil when it is unknown.
    func revision(of id: SharedVaultID) throws(VaultError) -> Revision? {
        let store = try owners.parts(of: .vault(id)).scope.store
        return try session.stored { try store.highestRevision() }
    }
}
