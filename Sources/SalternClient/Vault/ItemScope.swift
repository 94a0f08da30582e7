internal import Foundation

/// The owner of items.
package enum ItemOwner: Hashable, Sendable {
    /// The account of the session.
    case account
    /// A shared vault of which the account is a member.
    case vault(SharedVaultID)

    /// The beginning of the paths of its items on the server.
    var path: String {
        switch self {
        case .account: "/v1"
        case .vault(let id): "/v1/vaults/\(id)"
        }
    }
}

/// The memberships of the account in shared vaults, as far as the items of those need them.
protocol Memberships: AnyObject {
    /// Fetches what has changed in the logs of all vaults, before a sync of their items.
    /// - Throws: An error that concerns all vaults.
    func refresh() async throws(VaultError) -> VaultRefresh

    /// Returns the present keys and log of a vault, also of one whose membership has ended.
    func sealing(of id: SharedVaultID) throws(VaultError) -> any ItemSealing

    /// Returns true when this account has keys in a vault, or this device has its log.
    func isKnown(_ id: SharedVaultID) throws(VaultError) -> Bool

    /// Fetches the log of one vault, missing keys and missing lists.
    func learn(_ id: SharedVaultID) async throws(VaultError)

    /// Completes a sync of a vault's items.
    func afterRound(_ id: SharedVaultID) async throws(VaultError)

    /// Returns the result of fetching a vault's items during a refresh, once.
    func takeReport(of id: SharedVaultID) -> SyncReport?

    /// Records that the account's keys in all vaults may be disclosed, and are to be replaced.
    func noteDisclosedKeys() throws(VaultError)

    /// Replaces the account's keys in all vaults, after they may have been disclosed. Failures of vaults are repeated
    /// later.
    func replaceAllKeys() async throws(VaultError)

    /// Records that the server has no membership in a vault any more.
    func noteEnd(of id: SharedVaultID) throws(VaultError)
}

/// The result of a refresh of all vaults.
struct VaultRefresh: Sendable {
    /// The vaults whose items are synced.
    var present: [SharedVaultID] = []
    /// The vaults that failed. Their items are not synced.
    var failures: [SharedVaultID: VaultError] = [:]
}

/// The items of one owner on this device: their keys, their part of the store, their paths on the server. The parts of
/// a vault that work on items use this interface, and are the same for an account and a shared vault.
final class ItemScope {
    /// A vault that is not locked.
    struct Opened {
        let token: Token
        let engine: SyncEngine

        var sealer: any ItemSealing { engine.sealer }
    }

    /// The keys of a shared vault that running calls use.
    private final class Keys {
        var sealing: any ItemSealing

        init(_ sealing: any ItemSealing) { self.sealing = sealing }
    }

    let session: VaultSession
    let owner: ItemOwner
    let store: Store
    /// The items of edits that are stored together, and then reported together; nil for single edits.
    private var gathered: Set<ItemID>?
    /// The keys and the engine of a shared vault, for the present session.
    private var vault: (keys: Keys, opened: Opened)?

    init(_ session: VaultSession) {
        self.session = session
        owner = .account
        store = session.store
    }

    init(_ session: VaultSession, vault id: SharedVaultID) throws(VaultError) {
        self.session = session
        owner = .vault(id)
        store = try session.stored { try session.store.view(of: .vault(id)) }
    }

    // MARK: Keys

    var sealer: any ItemSealing { get throws(VaultError) { try open.sealer } }

    var engine: SyncEngine { get throws(VaultError) { try open.engine } }

    var open: Opened {
        get throws(VaultError) {
            let account = try session.open
            guard case .vault(let id) = owner else { return Opened(token: account.token, engine: account.engine) }
            guard let memberships = session.memberships else { throw .notFound }
            let sealing = try memberships.sealing(of: id)
            if let vault, vault.opened.token == account.token {
                vault.keys.sealing = sealing
                return vault.opened
            }
            let keys = Keys(sealing)
            let scope = WeakReference(self)
            let engine = session.keys.makeEngine(store, owner, account.token, sealing: { keys.sealing }) {
                try await scope.object?.learn(id, keys)
            }
            let opened = Opened(token: account.token, engine: engine)
            vault = (keys, opened)
            return opened
        }
    }

    /// Fetches later keys and uses them. For a shared vault the caller holds ``VaultSession/serverLock``.
    func learn() async throws(VaultError) {
        var report = SyncReport()
        defer { if !report.changed.isEmpty { notifySynced(report.changed) } }
        do {
            // An entry can cut a writer off. Then only edits count that this device had accepted before.
            if owner != .account { try await engine.round(into: &report, sends: false, learns: false) }
            try await engine.learn()
        } catch {
            throw VaultError(ofEngine: error)
        }
    }

    /// Removes the keys of a shared vault from memory, when the vault is locked.
    func forgetKeys() { vault = nil }

    private func learn(_ id: SharedVaultID, _ keys: Keys) async throws(VaultError) {
        guard let memberships = session.memberships else { return }
        try await memberships.learn(id)
        keys.sealing = try memberships.sealing(of: id)
    }

    // MARK: Store and server

    var settings: VaultSettings { session.settings }

    /// The server's API for these items.
    var api: SalternAPI {
        session.api.of(owner, head: owner == .account ? nil : vault?.keys.sealing.head)
    }

    /// The calls of the engine.
    func server(_ token: Token, _ retries: Retries? = nil) -> LiveSyncServer {
        LiveSyncServer(session.api, owner, token: token, retries: retries ?? session.syncRetries)
    }

    var serverLock: AsyncMutex { session.serverLock }

    var observers: VaultObservers { session.observers }

    func stored<Result>(_ body: () throws -> Result) throws(VaultError) -> Result { try session.stored(body) }

    func transaction<Result>(_ body: () throws -> Result) throws(VaultError) -> Result {
        try session.transaction(body)
    }

    func confirmedAge() throws(VaultError) -> Int64? { try session.confirmedAge() }

    // MARK: Observing

    /// Reports items that were changed here and have to be sent.
    func notify(_ ids: Set<ItemID>) {
        if let others = gathered {
            gathered = others.union(ids)
            return
        }
        notifySynced(ids)
        observers.edits.notify(owner)
    }

    /// Reports items that a sync has changed here.
    func notifySynced(_ ids: Set<ItemID>) {
        observers.items.notify(
            ItemChanges(ids: ids, collections: try? store.currentCollections(of: ids), owner: owner))
    }

    /// Reports the items of all edits in `body` together, after the last one.
    func gathering<Result>(_ body: () throws(VaultError) -> Result) throws(VaultError) -> Result {
        gathered = []
        defer { gathered = nil }
        let result = try body()
        let ids = gathered ?? []
        gathered = nil
        if !ids.isEmpty { notify(ids) }
        return result
    }
}
