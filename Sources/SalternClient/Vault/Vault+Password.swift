internal import Cryptography

extension Vault {
    /// Sets a new password. Items are not sealed again, because only the keyring is sealed with the password. All other
    /// sessions end.
    ///
    /// Without a reply, the change may have been applied. The next ``sync()`` or call with the password finds out.
    ///
    /// Example: "Password and recovery" in docs/app.md.
    /// - Throws: ``VaultError/wrongCredentials`` when `current` is not the present password.
    public func changePassword(from current: Password, to new: Password) async throws(VaultError) {
        try await replaceCredential(current, new, userid: nil) { api, credential, proof, token throws(APIError) in
            try await api.changeCredential(credential, current: proof, token)
        }
    }

    /// Sets another userid. It is another salt, so the same password gives another key. All other sessions end.
    ///
    /// Without a reply, the change may have been applied. The next ``sync()`` or call with the password finds out.
    ///
    /// ```swift
    /// try await vault.changeUserid(to: "ada@example.net", password: password)
    /// ```
    public func changeUserid(to userid: String, password: Password) async throws(VaultError) {
        try await replaceCredential(password, password, userid: userid) {
            api, credential, proof, token throws(APIError) in
            try await api.changeUserid(userid, credential, current: proof, token)
        }
    }

    /// - Parameter newUserid: Nil for the present one.
    private func replaceCredential(
        _ current: Password, _ new: Password, userid newUserid: String?,
        _ send: (SalternAPI, NewCredential, SecretBytes, Token) async throws(APIError) -> CredentialReply
    ) async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        let useridBefore = try open.userid
        try await settleUnconfirmedChange()
        let opened = try open
        let known = try knownIterations()
        let old = try await proven(current)
        // An earlier request has applied the change.
        if let newUserid, newUserid == opened.userid, newUserid != useridBefore { return }
        let userid = newUserid ?? opened.userid
        let iterations = max(try await newIterations(nil), known)
        let stretched = try await stretch(new, userid, iterations)
        for attempt in 1... {
            let (keyring, revision) = try await keyringForSealing()
            let next = try numberedForSending(keyring.changed { _ in }, of: userid)
            let (credential, sealed) = try next.credential(
                stretched, iterations, replacing: revision, opened.account)
            try noteUnconfirmed(
                .credential(.init(userid: userid, iterations: iterations)), replacing: revision,
                password: stretched.known, under: opened.password)
            let reply: CredentialReply?
            do throws(APIError) {
                reply = try await sendChange { () throws(APIError) in
                    try await credential.sent(noting: store) { credential throws(APIError) in
                        try await send(api, credential, old.passwordKey, opened.token)
                    }
                } orFindsDone: {
                    self.opened?.password.matches(stretched) ?? false
                }
            } catch {
                // Another device has changed the keyring, which has to be sealed again.
                if error.code == .keyringChanged, attempt < 3 { continue }
                throw VaultError(error)
            }
            guard let reply else { return }
            try rememberChange(
                of: opened, userid, iterations, reply.deviceToken, next, sealed, reply.keyringRevision,
                stretched.known)
            return try forgetUnconfirmed()
        }
    }

    /// Stores a confirmed change, regardless of the vault's present state. A vault that was locked stays locked. For a
    /// vault that was signed out, nothing is stored.
    func rememberChange(
        of opened: VaultSession.Opened, _ userid: String, _ iterations: Int, _ device: Token?, _ keyring: Keyring,
        _ sealed: [UInt8],
        _ revision: Revision?, _ password: KnownPassword
    ) throws(VaultError) {
        if store.isClosed { return }
        try remember(
            account: opened.account, userid: userid, iterations: iterations, session: opened.token, device: device,
            keyring: keyring, sealed: sealed, keyringRevision: revision, password, from: opened.engine.sealer,
            opens: self.opened != nil)
    }

    /// Derives the keys of the password of the open vault.
    ///
    /// A server could name another userid after a log-in by passkey, and would get a key with a salt of its choice.
    /// - Throws: ``VaultError/wrongCredentials`` for another password. Nothing is sent.
    func proven(_ password: Password) async throws(VaultError) -> StretchedPassword {
        let opened = try open
        let stretched = try await stretch(password, opened.userid, knownIterations())
        guard opened.password.matches(stretched) else { throw .wrongCredentials }
        return stretched
    }

    /// Fetches the keyring, without the keys of passkeys that the account no longer has. For these no unlock key is
    /// sealed.
    func keyringForSealing() async throws(VaultError) -> (keyring: Keyring, revision: Revision) {
        var (keyring, revision) = try await latestKeyring()
        if keyring.passkeys.isEmpty { return (keyring, revision) }
        // After the keyring, because a passkey is listed before its keys are in the keyring.
        let listed = Set(try await passkeys().map(\.id.bytes))
        keyring.passkeys.removeAll { !listed.contains($0.id) }
        return (keyring, revision)
    }

    /// Fetches the keyring from the server, which another device may have changed.
    /// - Throws: ``VaultError/keyringUnusable`` for one that cannot be opened or is older than the known one.
    func latestKeyring() async throws(VaultError) -> (keyring: Keyring, revision: Revision) {
        let opened = try open
        let reply = try await call { api throws(APIError) in try await api.getKeyring(opened.token) }
        guard let reply, let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) else {
            throw .keyringUnusable
        }
        if try order(of: keyring, openedBy: opened.password) == .rolledBack {
            try stored { try store.note(.keyringRolledBack) }
            throw .keyringUnusable
        }
        return (keyring, reply.revision)
    }

    // MARK: A printed code

    /// Creates a recovery code for a person to print. The previous one becomes invalid.
    ///
    /// Without a reply, the previous one may be invalid, too. ``Notice/Kind/recoveryRemoved`` then reports it.
    ///
    /// Example: "Password and recovery" in docs/app.md.
    public func makeRecoveryCode(password: Password) async throws(VaultError) -> RecoveryCode {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await settleUnconfirmedChange()
        let opened = try open
        let iterations = try knownIterations()
        let proof = try await proven(password)
        let code = RecoveryCode.random()
        let stretched = await code.stretched(saltPrefix: settings.stretching.saltPrefix)
        let (keyring, revision) = try await latestKeyring()
        guard let recovery = try? RecoveryKeys.new(for: stretched, account: opened.account) else { throw .unreadable }
        let next = try numberedForSending(keyring.changed { $0.recovery = recovery }, of: opened.userid)
        guard let recoveryKeyring = try? recovery.sealedKeyring(next, account: opened.account),
            let sealed = try? next.sealed(under: opened.password)
        else { throw .unreadable }
        // In one request: otherwise later keyrings could be sealed with keys that no code opens.
        let done = UnconfirmedChange.Outcome.recoveryCode(recovery)
        try noteUnconfirmed(done, replacing: revision)
        let written: Revision??
        do throws(APIError) {
            written = try await sendChange { () throws(APIError) in
                try await api.setRecovery(
                    recoveryKey: stretched.passwordKey, keyring: recoveryKeyring, accountKeyring: (sealed, revision),
                    currentPasswordKey: proof.passwordKey, opened.token)
            } orFindsDone: {
                (self.opened?.engine.sealer.keyring).map(done.isDone) ?? false
            }
        } catch {
            throw VaultError(error)
        }
        // The code is not lost, because this call returns it.
        guard let written else {
            try stored { try store.forgetNotices(.recoveryRemoved) }
            return code
        }
        try rememberChange(
            of: opened, opened.userid, iterations, nil, next, sealed, written ?? revision, opened.password)
        try forgetUnconfirmed()
        return code
    }

    /// Removes the recovery: no printed code can set a new password.
    ///
    /// ```swift
    /// try await vault.removeRecoveryCode(password: password)
    /// ```
    public func removeRecoveryCode(password: Password) async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await settleUnconfirmedChange()
        let opened = try open
        let iterations = try knownIterations()
        let proof = try await proven(password)
        // The server comes first. After an interruption the keyring names an invalid code, and the next attempt
        // continues.
        do throws(APIError) {
            try await settings.retries({ () throws(APIError) in
                try await api.removeRecovery(currentPasswordKey: proof.passwordKey, opened.token)
            })
        } catch {
            guard case .problem(let problem) = error, problem.status == 404 else { throw VaultError(error) }
        }
        for attempt in 1... {
            let (keyring, revision) = try await latestKeyring()
            guard keyring.recovery != nil else { return }
            let next = try numberedForSending(keyring.changed { $0.recovery = nil }, of: opened.userid)
            guard let sealed = try? next.sealed(under: opened.password) else { throw .unreadable }
            let written: Revision
            do throws(APIError) {
                written = try await settings.retries({ () throws(APIError) in
                    try await api.putKeyring(sealed, .revision(revision), opened.token)
                })
            } catch {
                if case .problem(let problem) = error, problem.status == 412, attempt < 3 { continue }
                throw VaultError(error)
            }
            return try rememberChange(
                of: opened, opened.userid, iterations, nil, next, sealed, written, opened.password)
        }
    }
}
