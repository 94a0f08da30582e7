import Cryptography
import Foundation

@testable import SalternClient

/// Access to the parts of a vault, which belong to its actor.
extension Vault {
    /// The number of versions that were opened to search for manifests.
    var readCount: Int { attachments.index.readCount }

    /// The state of sharing the store with other processes.
    var lending: StoreLending { sharing.lending }

    func storeID() throws(VaultError) -> ItemID { try session.stored { try session.store.storeID() } }

    var api: SalternAPI { session.api }

    var opened: VaultSession.Opened? { session.opened }

    var engine: SyncEngine { get throws(VaultError) { try session.engine } }

    func secret(_ fact: StoreFact) throws(VaultError) -> SecureBytes? { try session.secret(fact) }

    func items(
        _ collection: String, of owner: ItemOwner = .account
    ) throws(VaultError) -> (opened: [ItemID: (item: PlainItem, version: ItemVersion)], sealed: Set<ItemID>) {
        try owners.parts(of: owner).items.items(collection)
    }

    func attachmentsLackingChunks() throws(VaultError) -> [Attachment] { try attachments.lackingChunks() }

    func notify(_ ids: Set<ItemID>) { owners.account.scope.notify(ids) }

    func note(_ limits: AccountDescription.Limits) throws(VaultError) { try plan.note(itemBytes: limits.itemBytes) }

    @discardableResult
    func sweepChunks(at moment: Date, age: Int64?) async throws(VaultError) -> Int {
        var room = Int.max
        return try await attachments.sweeper.sweep(at: moment, age: age, room: &room) { () async throws(VaultError) in
            try await syncing.round()
        }.count
    }

    func sweepWhenDue(at moment: Date, age: Int64?) async -> SyncReport? {
        var room = ChunkSweeper.sweepLimit
        return await attachments.sweeper.sweepWhenDue(at: moment, age: age, room: &room) {
            () async throws(VaultError) in
            try await syncing.round()
        }
    }

    func forgetUnnamedWaiting(at age: Int64) throws(VaultError) { try attachments.waiting.forgetUnnamed(at: age) }

    // MARK: Keys

    func knownIterations() throws(VaultError) -> Int { try session.keys.knownIterations() }

    func stretch(
        _ password: Password, _ userid: String, _ iterations: Int
    ) async throws(VaultError) -> StretchedPassword {
        try await session.keys.stretch(password, userid, iterations)
    }

    func keptOpen() throws(VaultError) -> (password: KnownPassword, keyring: Keyring)? { try session.keys.keptOpen() }

    func numberedForSending(_ keyring: Keyring, of userid: String) throws(VaultError) -> Keyring {
        try session.keys.numberedForSending(keyring, of: userid)
    }

    func latestKeyring() async throws(VaultError) -> (keyring: Keyring, revision: Revision) {
        try await session.serverKeyring.latestKeyring()
    }

    func password(
        of credential: UnconfirmedChange.Credential, under current: KnownPassword
    ) throws(VaultError) -> KnownPassword? { try session.unconfirmed.password(of: credential, under: current) }

    func unconfirmedChange() throws(VaultError) -> UnconfirmedChange? { try session.unconfirmed.unconfirmedChange() }
}
