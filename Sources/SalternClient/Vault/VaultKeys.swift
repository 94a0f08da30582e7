internal import Cryptography

/// The keys of a vault's account on this device.
///
/// They are stored with the account, its userid and its session, and are in memory while the vault is open.
struct VaultKeys {
    let session: VaultSession

    // MARK: The known account

    func knownAccount() throws(VaultError) -> AccountID? {
        try session.stored { try session.store.fact(.account) }.flatMap { AccountID(bytes: $0) }
    }

    /// The account's last userid on this device; nil when no account is logged in.
    var userid: String? { get throws(VaultError) { try session.stored { try session.store.text(.userid) } } }

    /// Rejects another account: the store contains one account, and would send its items to the other.
    func refuseOther(_ userid: String) throws(VaultError) {
        if let known = try self.userid, known != userid { throw .otherAccount }
    }

    /// Returns the iterations of this device's last log-in; 0 when no account is logged in.
    func knownIterations() throws(VaultError) -> Int {
        Int(try session.stored { try session.store.number(.iterations) } ?? 0)
    }

    /// Returns the server's parameters for the keys of a password.
    ///
    /// Iterations are never lowered: a hostile server could request a key that is easier to guess.
    /// - Parameter wasRestored: True when the user has confirmed that the server's database was restored, possibly to
    ///   a time before they were raised.
    /// - Throws: ``VaultError/untrustworthy(_:)`` for parameters that the settings refuse, and for fewer iterations
    ///   than this device has used.
    func parameters(of userid: String, wasRestored: Bool) async throws(VaultError) -> KDFParameters {
        let parameters = try await session.call { api throws(APIError) in
            try await api.getKDFParameters(userid: userid)
        }
        do throws(StretchingRule.Refusal) {
            try session.settings.stretching.check(parameters, userid: userid)
        } catch {
            throw .untrustworthy(error)
        }
        let known = try knownIterations()
        guard parameters.iterations >= known || wasRestored else { throw .untrustworthy(.iterations(minimum: known)) }
        return parameters
    }

    // MARK: Passwords

    func stretch(
        _ password: Password, _ userid: String, _ iterations: Int
    ) async throws(VaultError) -> StretchedPassword {
        do throws(StretchingRule.Refusal) {
            return try await session.settings.stretching.stretch(password, userid: userid, iterations: iterations)
        } catch {
            throw .untrustworthy(error)
        }
    }

    /// Derives the keys of the password of the open vault.
    ///
    /// A server could name another userid after a log-in by passkey, and would get a key with a salt of its choice.
    /// - Throws: ``VaultError/wrongCredentials`` for another password. Nothing is sent.
    func proven(_ password: Password) async throws(VaultError) -> StretchedPassword {
        let opened = try session.open
        let stretched = try await stretch(password, opened.userid, knownIterations())
        guard opened.password.matches(stretched) else { throw .wrongCredentials }
        return stretched
    }

    // MARK: Opening and locking

    /// Opens the vault from the store.
    /// - Returns: False when no account is logged in.
    func resume() throws(VaultError) -> Bool {
        guard let account = try knownAccount(), let userid = try self.userid else { return false }
        guard let kept = try keptOpen() else { return true }
        session.opened = makeOpened(account, userid, try keptToken() ?? .missing, kept.password, kept.keyring)
        // Secrets of an earlier version are replaced; on a read-only disk they stay.
        if try session.stored({ try session.store.fact(.openKeyring) }) != nil {
            let secrets = kept.password.encoded(with: kept.keyring)
            try? session.deviceSecrets.change([.openKeys: secrets, .openKeyring: nil])
        }
        return true
    }

    /// Continues with the state that another process has stored.
    /// - Parameter account: The account before; nil when there was none.
    /// - Throws: ``VaultError/otherAccount`` when another account is logged in now. Its keys are not opened.
    func reopen(_ account: AccountID?) throws(VaultError) {
        do throws(VaultError) {
            if let account, let now = try knownAccount(), now != account { throw .otherAccount }
            let isThere = try resume()
            let kept = try keptOpen()
            if !isThere || kept == nil { session.opened = nil }
        } catch {
            session.opened = nil
            throw error
        }
    }

    /// Locks the vault: its keys are deleted, and the password is needed again. No request is sent. Running calls
    /// complete, and the vault stays locked.
    func lock() throws(VaultError) {
        session.noteLock()
        if session.store.isClosed { return }
        defer { session.opened = nil }
        guard try knownAccount() != nil else { return }
        try session.stored {
            try session.deviceSecrets.change([.openKeys: nil, .openKeyring: nil])
            try session.deviceSecrets.finishChange()
        }
    }

    /// Opens a locked vault, or one whose device key is lost, without network. In the latter case the session is lost,
    /// too.
    func unlock(_ password: Password) async throws(VaultError) {
        guard let account = try knownAccount(), let userid = try self.userid,
            let iterations = try session.stored({ try session.store.number(.iterations) })
        else { throw .sessionEnded }
        // An unreadable device key is reported before the derivation, which takes long.
        _ = try keptToken()
        let locks = session.lockCount
        let wasLocked = session.opened == nil
        let stretched = try await stretch(password, userid, Int(iterations))
        guard locks == session.lockCount else { throw .locked }
        // Everything else is read after the wait, because a running change or a log-in may have completed.
        guard let sealed = try session.stored({ try session.store.fact(.keyring) }) else { throw .sessionEnded }
        guard try knownAccount() == account, try self.userid == userid,
            let keyring = try? Keyring(sealed: sealed, openedBy: stretched)
        else { throw .wrongCredentials }
        if wasLocked, session.opened != nil { return }
        let token = try keptToken() ?? .missing
        let known = stretched.known
        try session.stored {
            try session.deviceSecrets.change([.openKeys: known.encoded(with: keyring), .openKeyring: nil])
        }
        session.opened = makeOpened(account, userid, token, known, keyring)
    }

    private func keptToken() throws(VaultError) -> Token? { try session.secret(.token).map(Token.init) }

    /// Returns the keys of an open vault on this device; nil when the vault is locked.
    func keptOpen() throws(VaultError) -> (password: KnownPassword, keyring: Keyring)? {
        let current = try session.secret(.openKeys)
        // An earlier version stored the derived password itself.
        let earlier = current == nil ? try session.secret(.openKeyring) : nil
        guard let secrets = current ?? earlier else { return nil }
        var reader = SecretReader(secrets)
        guard let first = reader.secret(KnownPassword.byteCount),
            let password = current == nil ? StretchedPassword(first).known : KnownPassword(encoded: first),
            let rest = reader.secret(secrets.count - KnownPassword.byteCount),
            let keyring = try? Keyring(encoded: rest)
        else { return nil }
        return (password, keyring)
    }

    /// Returns a sealer that opens the store, even of a locked vault if the password is the same.
    func storeSealer(_ account: AccountID, _ password: KnownPassword) throws(VaultError) -> Sealer? {
        if let opened = session.opened { return opened.sealer }
        if let kept = try keptOpen() { return Sealer(account: account, keyring: kept.keyring) }
        guard let sealed = try session.stored({ try session.store.fact(.keyring) }),
            let keyring = try? Keyring(sealed: sealed, openedBy: password)
        else { return nil }
        return Sealer(account: account, keyring: keyring)
    }

    // MARK: Storing keys

    /// Stores a session with its account and keyring.
    /// - Parameters:
    ///   - known: Opens the present store; nil to determine it.
    ///   - opens: True to open the vault; false when it was locked since.
    func remember(
        account: AccountID, userid: String, iterations: Int, session token: Token, device: Token?, keyring: Keyring,
        sealed: [UInt8], keyringRevision: Revision?, _ password: KnownPassword, from known: Sealer? = nil,
        opens: Bool
    ) throws(VaultError) {
        if let known = try knownAccount(), known != account { throw .keyringUnusable }
        let sealer = Sealer(account: account, keyring: keyring)
        var old = known
        if old == nil { old = try storeSealer(account, password) }
        if old == nil {
            let lost = try session.stored { try StoreKeys(session.store).changeCount(unknownTo: keyring) }
            guard lost == 0 else { throw .unsentEdits(count: lost) }
        }
        var secrets: [StoreFact: SecureBytes?] = [.token: token.text]
        if let device { secrets[.deviceToken] = device.text }
        try session.stored {
            try keep(
                sealer, sealed, keyringRevision, opens ? password : nil, secrets, from: old
            ) {
                try session.store.set(.account, account.bytes)
                try session.store.set(.userid, Array(userid.utf8))
                try session.store.set(.leaving, nil)
                try session.store.set(.iterations, Int64(iterations))
            }
        }
        if opens { session.opened = makeOpened(account, userid, token, password, keyring) }
    }

    /// Stores a confirmed change, regardless of the vault's present state. A vault that was locked stays locked. For a
    /// vault that was signed out, nothing is stored.
    func rememberChange(
        of opened: VaultSession.Opened, _ userid: String, _ iterations: Int, _ device: Token?, _ keyring: Keyring,
        _ sealed: [UInt8], _ revision: Revision?, _ password: KnownPassword
    ) throws(VaultError) {
        if session.store.isClosed { return }
        try remember(
            account: opened.account, userid: userid, iterations: iterations, session: opened.token, device: device,
            keyring: keyring, sealed: sealed, keyringRevision: revision, password, from: opened.sealer,
            opens: session.opened != nil)
    }

    private func makeOpened(
        _ account: AccountID, _ userid: String, _ token: Token, _ password: KnownPassword, _ keyring: Keyring
    ) -> VaultSession.Opened {
        let keys = VaultSession.OpenKeys(Sealer(account: account, keyring: keyring))
        let weakSession = WeakReference(session)
        let engine = makeEngine(session.store, .account, token, sealing: { keys.sealer }) {
            try await weakSession.object?.keys.takeLaterKeyring()
        }
        return VaultSession.Opened(
            account: account, userid: userid, token: token, password: password, keys: keys, engine: engine)
    }

    /// Creates the engine of an owner's items.
    /// - Parameter learn: Fetches later keys and uses them.
    func makeEngine(
        _ store: Store, _ owner: ItemOwner, _ token: Token, sealing: @escaping () -> any ItemSealing,
        learn: @escaping () async throws -> Void
    ) -> SyncEngine {
        SyncEngine(
            SyncContext(store, sealing: sealing, newID: session.settings.newID),
            server: LiveSyncServer(session.api, owner, token: token, retries: session.syncRetries),
            limits: session.settings.limits, learn: learn, merge: MembershipRecord.mergeRule(session.settings.mergeRule)
        ) { [observers = session.observers, store] report in
            let unsent = (try? store.changeCount()) ?? 0
            observers.progress.notify(
                report.sent > 0 ? .sent(report.sent, of: report.sent + unsent) : .fetched(report.fetched))
        }
    }

    /// Stores a keyring, and seals content again that it cannot open, in one transaction. Each is useless without the
    /// other. The previous secrets are deleted.
    /// - Parameters:
    ///   - password: Stored with the keyring, so that the vault stays open; nil for a locked vault.
    ///   - secrets: Other secrets that are replaced.
    ///   - old: Opens the present store; nil when it is empty or cannot be opened.
    ///   - body: Further steps of the transaction.
    func keep(
        _ sealer: Sealer, _ sealedKeyring: [UInt8], _ revision: Revision?, _ password: KnownPassword?,
        _ secrets: [StoreFact: SecureBytes?] = [:], from old: Sealer?, _ body: () throws -> Void = {}
    ) throws {
        var secrets = secrets
        secrets.updateValue(nil, forKey: .openKeyring)
        secrets.updateValue(password.map { $0.encoded(with: sealer.keyring) }, forKey: .openKeys)
        try session.deviceSecrets.change(secrets) {
            try body()
            try session.store.set(.keyring, sealedKeyring)
            try session.store.set(.keyringCounter, counter: sealer.keyring.counter)
            try session.store.set(.keyringDigest, sealer.keyring.digest)
            try session.store.set(.passkeys, sealer.keyring.passkeys.flatMap(\.digest))
            if let old {
                try StoreKeys(session.store).retireKeys(of: old.keyring, for: sealer.keyring)
                try noteRecoveryCode(of: old.keyring, after: sealer.keyring)
            }
            try StoreKeys(session.store).note(sealer.keyring)
            try session.store.forgetNotices(.keyringRolledBack)
            if let revision { try session.store.set(.keyringRevision, revision.number) }
            if let old { try Resealing(session.store, from: old, to: sealer).run() }
        }
    }

    /// Records a printed code that was not replaced together with the data key, or its replacement.
    private func noteRecoveryCode(of previous: Keyring, after keyring: Keyring) throws {
        let code = keyring.recovery?.publicKey.bytes
        if code == nil || code != previous.recovery?.publicKey.bytes {
            try session.store.forgetNotices(.recoveryCodeOutdated)
        } else if !previous.dataKeys.contains(keyring.currentKey) {
            try session.store.note(.recoveryCodeOutdated)
        }
    }

    // MARK: Later keyrings

    /// Fetches and uses a keyring of another device, for items sealed with an unknown key.
    func takeLaterKeyring() async throws(VaultError) {
        let opened = try session.open
        let reply = try await session.call { api throws(APIError) in try await api.getKeyring(opened.token) }
        // If the vault has been locked or a new session opened, these keys must not be stored.
        guard let current = session.opened, current.engine === opened.engine else { throw .locked }
        guard let reply, let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) else {
            return
        }
        switch try order(of: keyring, openedBy: opened.password) {
        case .rolledBack: return try session.stored { try session.store.note(.keyringRolledBack) }
        case .same: return try session.stored { try session.store.forgetNotices(.keyringRolledBack) }
        case .later: break
        }
        let sealer = Sealer(account: opened.account, keyring: keyring)
        try session.stored {
            try keep(sealer, reply.keyring.bytes, reply.revision, opened.password, from: opened.sealer)
        }
        opened.keys.sealer = sealer
    }

    /// Checks again for an older keyring on the server: this or another device may have put the later one back.
    func recheckOlderKeyring() async throws(VaultError) {
        if try session.stored({ try session.store.notices() }).contains(where: { $0.kind == .keyringRolledBack }) {
            try await takeLaterKeyring()
        }
    }

    // MARK: Counters

    /// Compares a keyring from the server with the known one.
    func order(of keyring: Keyring, openedBy password: KnownPassword) throws(VaultError) -> KeyringOrder {
        guard let account = try knownAccount() else { return .later }
        return try KeyringOrder.of(
            keyring, counter: try session.stored { try session.store.counter(.keyringCounter) },
            isRetired: try session.stored { try StoreKeys(session.store).isRetired(keyring.currentKey) }
        ) { () throws(VaultError) in
            // A store of an earlier version has no digest.
            if let digest = try session.stored({ try session.store.fact(.keyringDigest) }) { return digest }
            return try storeSealer(account, password)?.keyring.digest
        }
    }

    /// Assigns a keyring that is about to be sent a counter that no keyring of this device has had. It is above its own
    /// counter, the known one, and every one that was sent without a confirmation. The counter is on the disk when this
    /// returns. The keyring gets the mark of the userid.
    func numberedForSending(_ keyring: Keyring, of userid: String) throws(VaultError) -> Keyring {
        try session.stored {
            try session.store.transaction {
                let used = try max(session.store.counter(.keyringCounter), session.store.counter(.keyringSent))
                // The last counter has no successor: only a damaged keyring has it.
                guard used < .max else { throw StoreError.damaged }
                var numbered = keyring
                numbered.counter = max(keyring.counter, used + 1)
                numbered.useridMark = UseridMark(of: userid)
                try session.store.set(.keyringSent, counter: numbered.counter)
                return numbered
            }
        }
    }
}
