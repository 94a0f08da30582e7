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

    /// Refreshes all vaults. An account without vaults sends no request. A failure of one vault prevents no other.
    func run() async throws(VaultError) -> VaultRefresh {
        try service.restoreRecords()
        for id in try service.forgottenIDs() {
            if try service.keepUnsent(of: id) { continue }
            try await service.forget(id)
        }
        guard try !service.recordIDs().isEmpty else { return VaultRefresh() }
        let known = try await descriptions()
        var result = VaultRefresh()
        for id in known.keys.sorted() {
            try await alone(id, &result) { () async throws(VaultError) in try await fetchItems(id, known[id]) }
        }
        var behind: [SharedVaultID: [LaterHead]] = [:]
        let listed = try await service.holding { () async throws(VaultError) in
            let isFounding = try await VaultFounding(service: service).finishAll()
            let listed = isFounding ? known.merging(try await descriptions()) { earlier, _ in earlier } : known
            let moment = service.moment
            for id in try service.recordIDs() where result.failures[id] == nil {
                try await alone(id, &result) { () async throws(VaultError) in
                    if let description = listed[id] {
                        behind[id] = try await refresh(id, description)
                    } else {
                        try service.restoreKeys(of: id)
                        try await LogUpdate(service: service, id: id).decideMissing(at: moment)
                    }
                }
            }
            return listed
        }
        for (id, heads) in behind where !heads.isEmpty {
            try await alone(id, &result) { () async throws(VaultError) in
                try await catchUp(id)
                try noteHistories(heads, id)
            }
        }
        for id in try service.recordIDs() where listed[id] != nil && result.failures[id] == nil {
            if try service.state(id)?.own != nil { result.present.append(id) }
        }
        return result
    }

    /// Runs a step for one vault, and keeps its failure in the result.
    private func alone(
        _ id: SharedVaultID, _ result: inout VaultRefresh, _ body: () async throws(VaultError) -> Void
    ) async throws(VaultError) {
        do throws(VaultError) { try await body() } catch {
            guard error.isOfVaultAlone else { throw error }
            if case .unavailable(.unexpectedReply) = error { try service.note(id) { $0.isInvalid = true } }
            if case .shared(.unknownVault) = error { return try service.noteEnd(of: id) }
            result.failures[id] = error
        }
    }

    /// Fetches the items of a vault whose log has moved, before the new entries are taken. An entry can cut a writer
    /// off, and then only edits count that a manager's device had accepted before.
    private func fetchItems(_ id: SharedVaultID, _ listed: VaultDescription?) async throws(VaultError) {
        guard let listed, let state = try service.state(id), state.role != nil,
            UInt64(state.log.hashes.count) < listed.head.number
        else { return }
        do throws(VaultError) { try await service.fetchItems(id) } catch {
            // Without the connection the log waits, too. The round that follows reports another failure.
            if case .unavailable(let cause) = error, cause.isPassing { throw error }
            guard error.isOfVaultAlone else { throw error }
        }
    }

    /// Fetches the items of one vault, and takes the entries that the server had before.
    func catchUp(_ id: SharedVaultID) async throws(VaultError) {
        let description = try await description(id)
        try await fetchItems(id, description)
        try await service.holding { () async throws(VaultError) in _ = try await refresh(id, description) }
    }

    /// Refreshes one vault whose items the caller has fetched.
    func run(_ id: SharedVaultID) async throws(VaultError) {
        try await service.holding { () async throws(VaultError) in
            _ = try await refresh(id, try await description(id))
        }
    }

    private func description(_ id: SharedVaultID) async throws(VaultError) -> VaultDescription {
        let token = try service.token
        return try await service.call { api throws(APIError) in try await api.getVault(id, token) }
    }

    /// - Returns: The heads that the log does not have and that no finding names.
    private func refresh(_ id: SharedVaultID, _ listed: VaultDescription) async throws(VaultError) -> [LaterHead] {
        var listed = listed
        if let state = try service.state(id), UInt64(state.log.hashes.count) > listed.head.number {
            // This device has appended an entry since. The items come before entries that others have appended.
            listed = try await description(id)
            if UInt64(state.log.hashes.count) < listed.head.number { return [] }
        }
        guard listed.id == id else { throw .unavailable(.unexpectedReply) }
        try await LogUpdate(service: service, id: id).run(listed)
        guard try service.state(id) != nil else { return [] }
        let description = listed.members != nil ? listed : try await description(id)
        try service.note(description.members ?? [], id)
        service.descriptions[id] = description
        if let until = description.recoveringUntil, until > session.serverTime { return [] }
        guard let state = try service.state(id) else { return [] }
        let known = state.findings.otherHistories ?? [:]
        return state.unknownHeads.filter { known[$0.member] != $0.number }.map { LaterHead($0.member, $0.number) }
    }

    /// A later head than that of the log, which a member has signed. Its device may have been faster.
    private struct LaterHead: Hashable {
        let member: MemberID
        let number: UInt64

        init(_ member: MemberID, _ number: UInt64) {
            self.member = member
            self.number = number
        }
    }

    /// Notes the heads that are unknown after another refresh: they are of another history.
    private func noteHistories(_ heads: [LaterHead], _ id: SharedVaultID) throws(VaultError) {
        guard let state = try service.state(id) else { return }
        let unknown = Set(state.unknownHeads.map { LaterHead($0.member, $0.number) })
        let others = Dictionary(heads.filter(unknown.contains).map { ($0.member, $0.number) }) { first, _ in first }
        guard !others.isEmpty else { return }
        try service.note(id) { $0.otherHistories = ($0.otherHistories ?? [:]).merging(others) { _, new in new } }
    }
}

extension SharedVaultService: Memberships {
    func refresh() async throws(VaultError) -> VaultRefresh {
        let result = try await SharedVaultRefresh(service: self).run()
        // Other devices need the heads and keys that have arrived.
        if try hasUnsentRecords() { try await sendAccountItems() }
        return result
    }

    func sealing(of id: SharedVaultID) throws(VaultError) -> any ItemSealing { try sealing(try known(id)) }

    func isKnown(_ id: SharedVaultID) throws(VaultError) -> Bool {
        if let record = try record(id) { return !record.isForgotten }
        return try session.stored { try session.store.entryCount(of: id) } > 0
    }

    func learn(_ id: SharedVaultID) async throws(VaultError) { try await SharedVaultRefresh(service: self).run(id) }

    func afterRound(_ id: SharedVaultID) async throws(VaultError) {
        guard let description = descriptions[id] else { return }
        try await holding { () async throws(VaultError) in
            try noteWitness(id)
            try await VaultUpkeep(service: self, id: id).run(description)
        }
        // The account's other devices compare with the heads that this one has seen.
        if try hasUnsentRecords() { try? await sendAccountItems() }
    }

    /// Records that this device has all items of a vault. The caller holds ``lock``.
    func noteWitness(_ id: SharedVaultID) throws(VaultError) {
        guard let state = try state(id), state.findings.witnessedSince == nil else { return }
        try note(id) { $0.witnessedSince = state.log.head.number.value }
    }

    func takeReport(of id: SharedVaultID) -> SyncReport? { reports.removeValue(forKey: id) }

    func noteEnd(of id: SharedVaultID) throws(VaultError) {
        let moment = moment
        try note(id) { $0.noteEnd(at: moment) }
    }
}
