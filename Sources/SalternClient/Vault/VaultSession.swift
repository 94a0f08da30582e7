internal import Cryptography
internal import Foundation

/// The account of a vault on this device: its store, its server, and its keys while the vault is open.
///
/// The parts of a vault share one session. Session and parts belong to the vault's actor.
final class VaultSession {
    let settings: VaultSettings
    let api: SalternAPI
    let store: Store
    let observers: VaultObservers
    /// Held by each task that syncs or changes the keys.
    let serverLock = AsyncMutex()
    let demand: StoreDemand
    /// Nil while the vault is locked.
    var opened: Opened? {
        didSet {
            identityTokens.removeAll()
            if opened == nil { for step in whenLocked { step() } }
            guard let opened else { return state = store.isClosed ? .signedOut : .locked }
            if oldValue == nil {
                state = .idle
            } else if case .failed = state, opened.token != oldValue?.token {
                // The failure was of the previous session.
                state = .idle
            }
            openings += 1
            observers.openings.notify(openings)
        }
    }
    /// The state of the last sync, or of a locked or signed-out vault.
    private(set) var state = SyncState.locked { didSet { observers.states.notify(state) } }
    /// The number of times that the vault was opened, by a password, by a new session or by new keys.
    private(set) var openings = 0
    /// The number of times that the vault was locked. A call that began earlier does not open it.
    private(set) var lockCount = 0
    /// The memberships in shared vaults. Their owner is the vault, because they use the session.
    weak var memberships: (any Memberships)?
    /// Identity tokens of the session, by audience.
    private var identityTokens: [String: IdentityToken] = [:]
    /// Called when the keys were removed from memory.
    var whenLocked: [() -> Void] = []

    /// The state of a vault that is not locked.
    struct Opened {
        let account: AccountID
        let userid: String
        var token: Token
        /// Opens keyrings that other devices write.
        var password: KnownPassword
        let keys: OpenKeys
        let engine: SyncEngine

        var sealer: Sealer { keys.sealer }
    }

    /// The keys of the open account. Running calls use later ones, too.
    final class OpenKeys {
        var sealer: Sealer

        init(_ sealer: Sealer) { self.sealer = sealer }
    }

    init(_ settings: VaultSettings, _ store: Store, _ observers: VaultObservers) {
        self.settings = settings
        self.store = store
        self.observers = observers
        api = SalternAPI(settings.transport)
        demand = StoreDemand(folder: settings.folder)
    }

    // MARK: The open vault

    var open: Opened {
        get throws(VaultError) {
            guard let opened else { throw .locked }
            return opened
        }
    }

    var engine: SyncEngine { get throws(VaultError) { try open.engine } }

    var sealer: Sealer { get throws(VaultError) { try open.sealer } }

    func noteLock() { lockCount += 1 }

    /// Runs a step of the sync, and records its state.
    func syncing<Result>(_ body: () async throws(VaultError) -> Result) async throws(VaultError) -> Result {
        let before = state
        note(.syncing)
        do throws(VaultError) {
            let result = try await body()
            note(.inStep(since: Date()))
            return result
        } catch {
            note(Task.isCancelled ? before : .failed(error, next: nil))
            throw error
        }
    }

    /// Sets the state, unless the vault has been locked.
    func note(_ state: SyncState) { if opened != nil { self.state = state } }

    // MARK: Store and server

    /// Uses the store, and converts its errors.
    func stored<Result>(_ body: () throws -> Result) throws(VaultError) -> Result {
        do { return try body() } catch { throw VaultError(ofStore: error) }
    }

    /// Runs a transaction of the store, and converts its errors.
    func transaction<Result>(_ body: () throws -> Result) throws(VaultError) -> Result {
        do { return try store.transaction(body) } catch let error as VaultError { throw error } catch {
            throw VaultError(ofStore: error)
        }
    }

    /// Calls the API with retries, for requests that may be repeated.
    func call<Result: Sendable>(
        _ body: (SalternAPI) async throws(APIError) -> Result
    ) async throws(VaultError) -> Result {
        do throws(APIError) {
            return try await settings.retries({ () throws(APIError) in try await body(api) })
        } catch {
            throw VaultError(error)
        }
    }

    /// The retries of a sync. They end early when another process needs the store.
    var syncRetries: Retries {
        var retries = settings.retries
        retries.isStoreWanted = { [demand] in demand.isWaiting }
        return retries
    }

    /// Runs the steps after a log-in. After an error it ends the session, which would otherwise stay unused.
    func usingNewSession(_ token: Token, _ body: () async throws(VaultError) -> Void) async throws(VaultError) {
        do throws(VaultError) {
            try await body()
        } catch {
            // Without a reply the outcome is uncertain, and another request would also fail.
            if case .unavailable = error { throw error }
            try? await api.endCurrentSession(token)
            throw error
        }
    }

    /// The secrets that the device key seals.
    var deviceSecrets: DeviceSecrets { DeviceSecrets(store, settings.deviceKey) }

    /// Returns a secret; nil when there is none that the device key opens.
    func secret(_ fact: StoreFact) throws(VaultError) -> SecureBytes? {
        try stored { try deviceSecrets.secret(fact) }
    }

    // MARK: Clocks

    /// The server's time, because this device's clock can be wrong.
    var serverTime: Date { api.clock.time() ?? Date() }

    /// Advances the age of the store, if the server's clock confirms the local one.
    /// - Returns: The age in seconds. Nil when the two clocks disagree, or no reply had a time; then nothing is
    ///   removed.
    func confirmedAge() throws(VaultError) -> Int64? {
        let moment = settings.now()
        guard api.clock.confirms(moment) else { return nil }
        return try stored { try store.transaction { try store.advanceAge(to: Int64(moment.timeIntervalSince1970)) } }
    }

    // MARK: Identity tokens

    /// The shortest remaining validity of a returned token, in seconds.
    private static let remainder = 60.0

    /// Returns a token of the session for an audience. It stays in memory until a minute before its expiry.
    func identityToken(for audience: String) async throws(VaultError) -> IdentityToken {
        let session = try open.token
        // The device's clock may be behind: it would keep an expired token.
        if let kept = identityTokens[audience], let now = api.clock.time(),
            kept.expiresAt.timeIntervalSince(now) > Self.remainder
        {
            return kept
        }
        let token = try await call { api throws(APIError) in try await api.createToken(for: audience, session) }
        // Another session may have begun meanwhile.
        if opened?.token == session { identityTokens[audience] = token }
        return token
    }
}

extension VaultSession {
    var keys: VaultKeys { VaultKeys(session: self) }

    var serverKeyring: ServerKeyring { ServerKeyring(session: self) }

    var unconfirmed: UnconfirmedChanges { UnconfirmedChanges(session: self) }

    var credentials: CredentialChanges { CredentialChanges(session: self) }
}

/// The observers of a vault's events.
struct VaultObservers: Sendable {
    let items = Observers<ItemChanges>()
    /// The owners of items that were changed here and have to be sent.
    let edits = Observers<ItemOwner>()
    let progress = Observers<VaultProgress>()
    let states = Observers<SyncState>()
    /// The number of openings so far.
    let openings = Observers<Int>()
    /// The shared vaults whose members, invitations or findings have changed.
    let vaults = Observers<Set<SharedVaultID>>()

    /// Ends every sequence.
    func end() {
        items.end()
        edits.end()
        progress.end()
        states.end()
        openings.end()
        vaults.end()
    }
}
