internal import Cryptography
internal import Foundation
internal import VaultLog

/// Founds shared vaults.
struct VaultFounding {
    let service: SharedVaultService

    private var session: VaultSession { service.session }

    /// Founds a vault. The keys are on the server before the vault is, so a lost device loses no vault.
    func found(name: String, as person: String) async throws(VaultError) -> SharedVaultID {
        guard let vaultName = ClaimedName(name.precomposedStringWithCanonicalMapping),
            let personName = ClaimedName(person.precomposedStringWithCanonicalMapping)
        else { throw .shared(.invalidName) }
        // Before anything is written, because the server may have no vaults.
        _ = try await SharedVaultRefresh(service: service).descriptions()
        let key = GenerationKey.random()
        let member = VaultLog.MemberID.random()
        let entry: Entry
        let keys: MemberPrivateKeys
        do {
            keys = try MemberPrivateKeys.generate()
            entry = try EntryWriter.found(by: member, named: personName, keys, key, at: service.now)
        } catch {
            throw .unreadable
        }
        let id = SharedVaultID(entry.vault)
        var record = MembershipRecord(memberId: MemberID(member), keys, name: vaultName.text)
        record.take(key, .first)
        guard let log = try? MembershipLog(founding: entry) else { throw .unreadable }
        record.takeHead(of: log)
        try session.transaction {
            try session.store.set(.founding, of: id, entry.bytes)
            try service.write(record, id)
        }
        // A sync beside this call leaves the vault to it, so that this call throws the server's reason.
        service.beingFounded.insert(id)
        defer { service.beingFounded.remove(id) }
        do throws(VaultError) { try await service.sendRecord(id) } catch {
            // A sync beside this call can have sent the keys. Then only this round has failed.
            if try session.stored({ try session.store.change(ItemID(id.uuid)) }) != nil {
                // Nothing was founded. A repeated call makes another vault.
                try abandon(id)
                throw error
            }
        }
        try await service.holding { () async throws(VaultError) in try await finish(id) }
        return id
    }

    /// Sends a founding entry that the server has not confirmed. The caller holds ``SharedVaultService/lock``.
    func finish(_ id: SharedVaultID) async throws(VaultError) {
        guard let bytes = try session.stored({ try session.store.fact(.founding, of: id) }) else { return }
        guard let entry = try? Entry(bytes) else { throw .store(.damaged) }
        let token = try service.token
        do throws(VaultError) {
            let reply = try await service.call { api throws(APIError) in try await api.createVault(bytes, token) }
            guard reply.hash.bytes == entry.hash.bytes else { throw .unavailable(.unexpectedReply) }
        } catch {
            // Its id contains its time, so the entry cannot be made again.
            if !error.isPassing { try abandon(id) }
            throw error
        }
        try session.transaction {
            try service.take([entry], id)
            try session.store.set(.founding, of: id, nil)
        }
        if let name = try service.record(id)?.name { try service.writeName(name, id) }
        service.notify([id])
    }

    /// Removes a vault that was not founded.
    private func abandon(_ id: SharedVaultID) throws(VaultError) {
        try session.transaction {
            try session.store.set(.founding, of: id, nil)
            try service.items.deleteHidden(ItemID(id.uuid))
        }
        service.forgetState(id)
    }

    /// Sends the founding entries of interrupted calls, if their keys are on the server.
    /// - Returns: True when there were any.
    func finishAll() async throws(VaultError) -> Bool {
        var hasFounded = false
        let begun = try session.stored { try session.store.vaultIDs(with: .founding) }
        for id in begun where !service.beingFounded.contains(id) {
            guard try service.record(id) != nil else {
                try session.stored { try session.store.set(.founding, of: id, nil) }
                continue
            }
            guard try session.stored({ try session.store.change(ItemID(id.uuid)) }) == nil else { continue }
            do throws(VaultError) {
                try await finish(id)
                hasFounded = true
            } catch {
                guard error.isOfVaultAlone else { throw error }
            }
        }
        return hasFounded
    }
}

extension VaultError {
    /// True when the same call can succeed later.
    fileprivate var isPassing: Bool {
        switch self {
        case .unavailable, .locked, .sessionEnded, .store: true
        default: false
        }
    }
}

extension SharedVaultService {
    /// The collection of the item with a vault's name. Only managers' edits of it count.
    static let nameCollection = "saltern-vault"

    /// True when keys of this account wait to be sent.
    func hasUnsentRecords() throws(VaultError) -> Bool {
        for id in try allRecordIDs() {
            if try session.stored({ try session.store.change(ItemID(id.uuid)) }) != nil { return true }
        }
        return false
    }

    /// Runs a round of the account alone.
    func sendAccountItems() async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        _ = try await syncing.round()
    }

    /// Sends this account's keys in a vault.
    /// - Throws: ``VaultError/unsentEdits(count:)`` when the server does not accept them, as by a full plan.
    func sendRecord(_ id: SharedVaultID) async throws(VaultError) {
        try await sendAccountItems()
        guard try session.stored({ try session.store.change(ItemID(id.uuid)) }) == nil else {
            throw .unsentEdits(count: 1)
        }
    }
}
