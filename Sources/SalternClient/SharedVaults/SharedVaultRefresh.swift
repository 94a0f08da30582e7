internal import Foundation
internal import VaultLog

/// Brings all shared vaults of the account to the server's state, and carries out what is due.
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
    func run() async throws(VaultError) {
        try service.restoreRecords()
        guard try !service.recordIDs().isEmpty else { return }
        try await service.holding { () async throws(VaultError) in
            try await VaultFounding(service: service).finishAll()
            let listed = try await descriptions()
            let moment = Int64(session.serverTime.timeIntervalSince1970)
            for id in try service.recordIDs() {
                if let description = listed[id] {
                    try await refresh(id, description)
                } else {
                    try await LogUpdate(service: service, id: id).decideMissing(at: moment)
                }
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
        try await VaultUpkeep(service: service, id: id).run(description)
    }
}
