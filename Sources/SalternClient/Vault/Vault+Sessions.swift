internal import Cryptography

extension Vault {
    /// Registers a new account, and opens its vault. When the reply is lost, the same call can be repeated.
    ///
    /// Example: "First launch" in docs/app.md.
    /// - Parameters:
    ///   - iterations: The PBKDF2 iterations; nil for the server's recommendation within the limits of
    ///     ``StretchingRule``.
    ///   - invite: The operator's invite, if the server requires one.
    /// - Throws: ``VaultError/refused(_:)`` with ``Problem/Code/useridTaken`` when another account has the userid, or
    ///   when the server rejects registrations. ``VaultError/useridNotCanonical(canonical:)`` with the form for the
    ///   next call. ``VaultError/otherAccount`` when the folder contains another account.
    ///   ``VaultError/unavailable(_:)`` without a reply.
    public static func signUp(
        _ settings: VaultSettings, userid: String, password: Password, iterations: Int? = nil, invite: String? = nil
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await vault.signUp(userid, password, iterations, invite)
        return vault
    }

    /// Opens the vault of an existing account.
    ///
    /// Example: "First launch" in docs/app.md.
    /// - Parameters:
    ///   - code: Six digits or a recovery code, after ``VaultError/codeRequired``.
    ///   - restoringKeyring: True when the user has approved that a kept keyring of the server replaces the present
    ///     one, after ``VaultError/keyringReplaced``.
    ///   - authenticator: Answers when the account has passkeys as a second factor.
    /// - Throws: ``VaultError/wrongCredentials``. ``VaultError/codeRequired``, ``VaultError/wrongCode``,
    ///   ``VaultError/passkeyRequired(orCode:)`` or ``VaultError/wrongPasskey`` with a second factor.
    ///   ``VaultError/useridNotCanonical(canonical:)`` with the form for the next call.
    ///   ``VaultError/untrustworthy(_:)`` for parameters that this app does not use. ``VaultError/keyringReplaced`` or
    ///   ``VaultError/keyringUnusable`` when the keyring cannot be opened or is older than a known one.
    ///   ``VaultError/otherAccount`` when the folder contains another account. ``VaultError/unavailable(_:)`` without a
    ///   reply.
    public static func logIn(
        _ settings: VaultSettings, userid: String, password: Password, code: String? = nil,
        restoringKeyring: Bool = false, passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await vault.logIn(asKnown: userid, password, code, restoringKeyring, authenticator)
        return vault
    }

    /// Opens a new session after one has ended. Unsent edits are kept.
    ///
    /// Example: "Unlock and log in again" in docs/app.md.
    /// - Parameters:
    ///   - code: Six digits or a recovery code, after ``VaultError/codeRequired``.
    ///   - userid: The new userid, when another device has changed it.
    ///   - restoringKeyring: True when the user has approved that a keyring is restored. After
    ///     ``Notice/Kind/keyringRolledBack`` the known keyring replaces the server's older one, because its database
    ///     was restored from a backup. Fewer iterations than the known ones are then accepted, too. After
    ///     ``VaultError/keyringReplaced`` a kept keyring of the server replaces one that cannot be opened. A printed
    ///     code that is not in both keyrings becomes invalid (``Notice/Kind/recoveryRemoved``), and so does a passkey.
    ///   - authenticator: Answers when the account has passkeys as a second factor.
    /// - Throws: ``VaultError/keyringNotRestorable`` when the known keyring is sealed with another password and has
    ///   newer keys. ``VaultError/unsentEdits(count:)`` when another device has changed password and keys while this
    ///   vault was locked: unlock it with the previous password, then log in again.
    public func logInAgain(
        password: Password, code: String? = nil, userid: String? = nil, restoringKeyring: Bool = false,
        passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) {
        guard let known = try stored({ try store.text(.userid) }) else { throw .locked }
        await serverLock.lock()
        defer { serverLock.unlock() }
        guard let userid else {
            return try await logIn(asKnown: known, password, code, restoringKeyring, authenticator)
        }
        try await logIn(
            userid, password, code, renamed: true, restoringKeyring: restoringKeyring, passkey: authenticator)
    }

    /// Opens the vault of the last log-in, without password and without network.
    ///
    /// Example: "Launch" in docs/app.md.
    /// - Returns: nil when no account is logged in on this device. A locked vault (``isLocked``) needs ``unlock(_:)``.
    /// - Throws: ``VaultError/store(_:)`` when the folder cannot be opened, such as ``StoreError/inUse``.
    public static func resume(_ settings: VaultSettings) async throws(VaultError) -> Vault? {
        let vault = try await opening(settings)
        return try await vault.resume() ? vault : nil
    }

    // MARK: Steps

    private func signUp(
        _ userid: String, _ password: Password, _ iterations: Int?, _ invite: String?
    ) async throws(VaultError) {
        try refuseOther(userid)
        let iterations = try await newIterations(iterations)
        let stretched = try await stretch(password, userid, iterations)
        let keyring = try numberedForSending(.new(), of: userid)
        guard let sealed = try? keyring.sealed(under: stretched) else { throw .unreadable }
        let invite = invite.map { Token(SecureBytes(copying: PastedText.trimmed($0).utf8)) }
        let reply: RegistrationReply
        do throws(APIError) {
            reply = try await settings.retries(
                { () throws(APIError) in
                    try await self.api.register(
                        userid: userid, passwordKey: stretched.passwordKey, iterations: iterations, keyring: sealed,
                        deviceName: self.settings.deviceName, invite: invite)
                })
        } catch {
            // If a reply was lost, the account may exist already, and the log-in succeeds.
            if error.code == .useridTaken, (try? await logIn(userid, password, nil)) != nil { return }
            throw VaultError(error)
        }
        try remember(
            account: reply.accountId, userid: userid, iterations: iterations, session: reply.session.token,
            device: reply.deviceToken, keyring: keyring, sealed: sealed, keyringRevision: nil, stretched.known,
            opens: true)
    }

    /// Logs in with the known userid, or with the new one of a change whose outcome is uncertain.
    private func logIn(
        asKnown userid: String, _ password: Password, _ code: String?, _ restoringKeyring: Bool,
        _ authenticator: (any PasskeyAuthenticator)?
    ) async throws(VaultError) {
        let next = try unconfirmedUserid()
        do throws(VaultError) {
            try await logIn(
                userid, password, code, restoringKeyring: restoringKeyring, passkey: authenticator)
        } catch let first {
            // For an unknown userid the server returns decoys.
            guard let next, next != userid, first.isAboutUserid else { throw first }
            do throws(VaultError) {
                try await logIn(
                    next, password, code, renamed: true, restoringKeyring: restoringKeyring, passkey: authenticator)
            } catch {
                throw error.isAboutUserid ? first : error
            }
        }
    }

    /// - Parameter renamed: True when the userid may differ from the known one, for the same account.
    func logIn(
        _ userid: String, _ password: Password, _ code: String?, renamed: Bool = false,
        restoringKeyring: Bool = false, passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) {
        if !renamed { try refuseOther(userid) }
        let code = try code.map(PastedText.oneTimeCode)
        let locks = session.lockCount
        let parameters = try await call { api throws(APIError) in try await api.getKDFParameters(userid: userid) }
        do throws(StretchingRule.Refusal) {
            try settings.stretching.check(parameters, userid: userid)
        } catch {
            throw .untrustworthy(error)
        }
        try refuseFewer(parameters.iterations, wasRestored: restoringKeyring)
        var stretched = try await stretch(password, userid, parameters.iterations)
        let device = DeviceClaim(name: settings.deviceName, token: try secret(.deviceToken).map(Token.init))
        // A code is valid for one log-in. After a lost reply the same code is rejected.
        let retries = code == nil ? settings.retries : Retries(attempts: 1)
        let reply: LoginReply
        do throws(APIError) {
            reply = try await retries({ () throws(APIError) in
                try await self.api.logIn(
                    userid: userid, passwordKey: stretched.passwordKey, device: device, code: code)
            })
        } catch {
            reply = try await PasskeyLogIn.repeated(
                after: error, userid, stretched, device, authenticator, in: self)
        }
        try await usingNewSession(reply.session.token) { () async throws(VaultError) in
            // The account is another one, whose items must not be mixed with those in the store.
            if renamed, try knownAccount() != reply.accountId { throw .otherAccount }
            var (keyring, sealed, revision) = try await keyring(of: reply, userid, stretched, restoringKeyring)
            // The same account had a later keyring before: this one would seal with retired keys.
            if try order(of: keyring, openedBy: stretched.known) == .rolledBack {
                try stored { try store.note(.keyringRolledBack) }
                guard restoringKeyring else { throw .keyringUnusable }
                (keyring, sealed, revision) = try await putKeyringBack(over: keyring, of: reply, userid, stretched)
            }
            var iterations = parameters.iterations
            var deviceToken = reply.deviceToken
            if reply.kdfUpgradeRequired, revision == reply.keyringRevision,
                let raised = try await raiseIterations(
                    from: iterations, of: password, userid, stretched, keyring, reply)
            {
                (stretched, iterations, keyring, sealed, revision) = raised.opening
                deviceToken = raised.deviceToken ?? deviceToken
            }
            try remember(
                account: reply.accountId, userid: userid, iterations: iterations, session: reply.session.token,
                device: deviceToken, keyring: keyring, sealed: sealed, keyringRevision: revision, stretched.known,
                opens: locks == session.lockCount)
        }
    }

    /// Returns the keyring of a log-in: the server's, or a kept one when that cannot be opened.
    private func keyring(
        of reply: LoginReply, _ userid: String, _ password: StretchedPassword, _ restoring: Bool
    ) async throws(VaultError) -> (Keyring, sealed: [UInt8], Revision?) {
        if let sealed = reply.keyring?.bytes, let keyring = try? Keyring(sealed: sealed, openedBy: password) {
            return (keyring, sealed, reply.keyringRevision)
        }
        return try await restoreKeyring(over: reply, userid, password, isAgreed: restoring)
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

    /// Opens the vault from the store.
    /// - Returns: False when no account is logged in.
    func resume() throws(VaultError) -> Bool {
        guard let account = try knownAccount(), let userid = try stored({ try store.text(.userid) }) else {
            return false
        }
        guard let kept = try keptOpen() else { return true }
        opened = makeOpened(account, userid, try keptToken() ?? .missing, kept.password, kept.keyring)
        // Secrets of an earlier version are replaced; on a read-only disk they stay.
        if try stored({ try store.fact(.openKeyring) }) != nil {
            let secrets = kept.password.encoded(with: kept.keyring)
            try? deviceSecrets.change([.openKeys: secrets, .openKeyring: nil])
        }
        return true
    }

    /// Locks the vault: its keys are deleted, and the password is needed again. No request is sent. Running calls
    /// complete, and the vault stays locked.
    ///
    /// The device key is replaced, so that remaining copies of the keys in the store's files cannot be opened.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Throws: ``VaultError/store(_:)`` when the disk or the key store fails. The keys are then deleted from memory,
    ///   but may remain on the disk.
    public func lock() throws(VaultError) {
        session.noteLock()
        if store.isClosed { return }
        defer { opened = nil }
        guard try knownAccount() != nil else { return }
        try stored {
            try deviceSecrets.change([.openKeys: nil, .openKeyring: nil])
            try deviceSecrets.finishChange()
        }
    }

    /// True when items cannot be read until ``unlock(_:)`` is called.
    public var isLocked: Bool { opened == nil }

    /// Opens a locked vault, or one whose device key is lost, without network. In the latter case the session is lost,
    /// too: ``sync()`` throws ``VaultError/sessionEnded`` until
    /// ``logInAgain(password:code:userid:restoringKeyring:passkey:)``.
    ///
    /// Example: "Unlock and log in again" in docs/app.md.
    /// - Throws: ``VaultError/wrongCredentials`` for another password than the last one of this device.
    ///   ``VaultError/sessionEnded`` when no account is logged in on this device.
    public func unlock(_ password: Password) async throws(VaultError) {
        guard let account = try knownAccount(), let userid = try stored({ try store.text(.userid) }),
            let iterations = try stored({ try store.number(.iterations) })
        else { throw .sessionEnded }
        let token = try keptToken() ?? .missing
        let locks = session.lockCount
        let stretched = try await stretch(password, userid, Int(iterations))
        guard locks == session.lockCount else { throw .locked }
        // The keyring is read after the wait, because a running change may have completed.
        guard let sealed = try stored({ try store.fact(.keyring) }) else { throw .sessionEnded }
        guard let keyring = try? Keyring(sealed: sealed, openedBy: stretched) else { throw .wrongCredentials }
        let known = stretched.known
        try stored {
            try deviceSecrets.change([.openKeys: known.encoded(with: keyring), .openKeyring: nil])
        }
        opened = makeOpened(account, userid, token, known, keyring)
    }

    // MARK: Pieces

    /// The account's last userid on this device; nil when no account is logged in.
    public var userid: String? { get throws(VaultError) { try stored { try store.text(.userid) } } }

    func knownAccount() throws(VaultError) -> AccountID? {
        try stored { try store.fact(.account) }.flatMap { AccountID(bytes: $0) }
    }

    /// Rejects another account: the store contains one account, and would send its items to the other.
    func refuseOther(_ userid: String) throws(VaultError) {
        if let known = try stored({ try store.text(.userid) }), known != userid {
            throw .otherAccount
        }
    }

    func stretch(_ password: Password, _ userid: String, _ iterations: Int) async throws(VaultError)
        -> StretchedPassword
    {
        do throws(StretchingRule.Refusal) {
            return try await settings.stretching.stretch(password, userid: userid, iterations: iterations)
        } catch {
            throw .untrustworthy(error)
        }
    }

    var deviceSecrets: DeviceSecrets { session.deviceSecrets }

    func secret(_ fact: StoreFact) throws(VaultError) -> SecureBytes? { try session.secret(fact) }

    private func keptToken() throws(VaultError) -> Token? { try secret(.token).map(Token.init) }

    /// Stores a session with its account and keyring.
    /// - Parameters:
    ///   - known: Opens the present store; nil to determine it.
    ///   - opens: True to open the vault; false when it was locked since.
    func remember(
        account: AccountID, userid: String, iterations: Int, session: Token, device: Token?, keyring: Keyring,
        sealed: [UInt8], keyringRevision: Revision?, _ password: KnownPassword, from known: Sealer? = nil,
        opens: Bool
    ) throws(VaultError) {
        if let known = try knownAccount(), known != account { throw .keyringUnusable }
        let sealer = Sealer(account: account, keyring: keyring)
        var old = known
        if old == nil { old = try storeSealer(account, password) }
        if old == nil {
            let lost = try stored { try store.changeCount(unknownTo: keyring) }
            guard lost == 0 else { throw .unsentEdits(count: lost) }
        }
        var secrets: [StoreFact: SecureBytes?] = [.token: session.text]
        if let device { secrets[.deviceToken] = device.text }
        try stored {
            try keep(
                sealer, sealed, keyringRevision, opens ? password : nil, secrets, from: old
            ) {
                try store.set(.account, account.bytes)
                try store.set(.userid, Array(userid.utf8))
                try store.set(.leaving, nil)
                try store.set(.iterations, Int64(iterations))
            }
        }
        if opens { opened = makeOpened(account, userid, session, password, keyring) }
    }

    private func makeOpened(
        _ account: AccountID, _ userid: String, _ token: Token, _ password: KnownPassword, _ keyring: Keyring
    ) -> VaultSession.Opened {
        let engine = SyncEngine(
            store: store, server: LiveSyncServer(api: api, token: token, retries: settings.retries),
            sealer: Sealer(account: account, keyring: keyring), limits: settings.limits, newID: settings.newID)
        engine.merge = settings.mergeRule
        engine.takeLaterKeyring = { [weak self] in try await self?.takeLaterKeyring() }
        engine.onProgress = { [observers, store] report in
            let unsent = (try? store.changeCount()) ?? 0
            observers.progress.notify(
                report.sent > 0 ? .sent(report.sent, of: report.sent + unsent) : .fetched(report.fetched))
        }
        return VaultSession.Opened(account: account, userid: userid, token: token, password: password, engine: engine)
    }
}

extension VaultError {
    /// True when the error can mean that no account has the userid.
    fileprivate var isAboutUserid: Bool {
        switch self {
        case .wrongCredentials, .untrustworthy(.iterations): true
        default: false
        }
    }
}
