internal import Foundation
internal import VaultLog

/// Brings all shared vaults of the account to the server's state. What is due then is ``VaultUpkeep``.
struct SharedVaultRefresh {
    let service: SharedVaultService

    /// The maximum number of vaults that a server can list.
    private static let limit = 10_000

    private var session: VaultSession { service.session }

    /// Returns the server's list of vaults.
    /// - Throws: ``SharedVaultError/notSupported``.
    func descriptions() async throws(VaultError) -> [SharedVaultID: VaultDescription] {
        let token = try service.token
        let listed: [VaultDescription]
        do throws(APIError) {
            listed = try await session.settings.retries({ () throws(APIError) in
                try await session.api.listVaults(token)
            })
        } catch {
            if error.code == .notFound { throw .shared(.notSupported) }
            throw VaultError(error)
        }
        guard listed.count <= Self.limit else { throw .unavailable(.unexpectedReply) }
        return Dictionary(listed.map { ($0.id, $0) }) { first, _ in first }
    }

    /// Refreshes all vaults. An account without vaults sends no request.
    /// - Returns: The vaults whose items are synced.
    func run() async throws(VaultError) -> [SharedVaultID] {
        try service.restoreRecords()
        guard try !service.recordIDs().isEmpty else { return [] }
        let known = try await descriptions()
        for id in known.keys.sorted() { try await fetchItems(id, known[id]) }
        return try await service.holding { () async throws(VaultError) in
            let isFounding = try await VaultFounding(service: service).finishAll()
            let listed = isFounding ? try await descriptions() : known
            let moment = Int64(session.serverTime.timeIntervalSince1970)
            var present: [SharedVaultID] = []
            for id in try service.recordIDs() {
                if let description = listed[id] {
                    try await refreshAlone(id, description)
                    if try service.state(id)?.own != nil { present.append(id) }
                } else {
                    try await LogUpdate(service: service, id: id).decideMissing(at: moment)
                }
            }
            return present
        }
    }

    /// Fetches the items of a vault whose log has moved, before the new entries are taken. An entry can cut a writer
    /// off, and then only edits count that a manager's device had accepted before.
    private func fetchItems(_ id: SharedVaultID, _ listed: VaultDescription?) async throws(VaultError) {
        guard let listed, let state = try service.state(id), state.role != nil,
            UInt64(state.log.hashes.count) < listed.head.number
        else { return }
        do throws(VaultError) {
            service.add(try await service.syncing.fetch(.none, of: .vault(id), learns: false), of: id)
        } catch {
            switch error {
            // The round that follows reports it.
            case .refused, .unavailable(.unexpectedReply): break
            default: throw error
            }
        }
    }

    /// Refreshes one vault.
    func run(_ id: SharedVaultID) async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            let token = try service.token
            let description = try await service.call { api throws(APIError) in try await api.getVault(id, token) }
            try await refresh(id, description)
        }
    }

    /// Refreshes one vault. A dishonest statement about it does not block the others.
    private func refreshAlone(_ id: SharedVaultID, _ listed: VaultDescription) async throws(VaultError) {
        do throws(VaultError) {
            try await refresh(id, listed)
            try service.note(id) { $0.isInvalid = nil }
        } catch .unavailable(.unexpectedReply) {
            try service.note(id) { $0.isInvalid = true }
        }
    }

    private func refresh(_ id: SharedVaultID, _ listed: VaultDescription) async throws(VaultError) {
        guard listed.id == id else { throw .unavailable(.unexpectedReply) }
        try await LogUpdate(service: service, id: id).run(listed)
        guard let state = try service.state(id) else { return }
        if let known = state.record.head, state.log.head.number.value < known.number {
            // Another device of this account has seen later entries.
            try service.note(id) { $0.isRolledBack = true }
        }
        let token = try service.token
        let description =
            if listed.members != nil { listed } else {
                try await service.call { api throws(APIError) in try await api.getVault(id, token) }
            }
        try service.note(description.members ?? [], id)
        service.descriptions[id] = description
    }
}

extension SharedVaultService: Memberships {
    func refresh() async throws(VaultError) -> VaultRefresh {
        let present = try await SharedVaultRefresh(service: self).run()
        // Other devices need the heads and keys that have arrived.
        if try hasUnsentRecords() { try await sendAccountItems() }
        return VaultRefresh(present: present)
    }

    func sealing(of id: SharedVaultID) throws(VaultError) -> any ItemSealing { try sealing(try known(id)) }

    func isKnown(_ id: SharedVaultID) throws(VaultError) -> Bool {
        let store = session.store
        return try session.stored {
            try store.current(ItemID(id.uuid))?.collection == MembershipRecord.collection || store.entryCount(of: id) > 0
        }
    }

    func learn(_ id: SharedVaultID) async throws(VaultError) { try await SharedVaultRefresh(service: self).run(id) }

    func afterRound(_ id: SharedVaultID) async throws(VaultError) {
        guard let description = descriptions[id] else { return }
        try await holding { () async throws(VaultError) in
            try await VaultUpkeep(service: self, id: id).run(description)
        }
    }

    func takeReport(of id: SharedVaultID) -> SyncReport? { reports.removeValue(forKey: id) }

    func noteEnd(of id: SharedVaultID) throws(VaultError) { try note(id) { $0.isEnded = true } }
}
