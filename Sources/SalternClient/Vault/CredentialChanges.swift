internal import Cryptography

/// A credential with more iterations, and its keyring.
struct RaisedCredential {
    var opening: (StretchedPassword, iterations: Int, Keyring, sealed: [UInt8], keyringRevision: Revision?)
    var deviceToken: Token?
}

/// Changes of password, userid and printed code.
struct CredentialChanges {
    let session: VaultSession

    /// Sets a new password. Items are not sealed again, because only the keyring is sealed with the password. All other
    /// sessions end.
    func changePassword(from current: Password, to new: Password) async throws(VaultError) {
        try await replaceCredential(current, new, userid: nil) { api, credential, proof, token throws(APIError) in
            try await session.api.changeCredential(credential, current: proof, token)
        }
    }

    /// Sets another userid. It is another salt, so the same password gives another key. All other sessions end.
    func changeUserid(to userid: String, password: Password) async throws(VaultError) {
        try await replaceCredential(password, password, userid: userid) {
            api, credential, proof, token throws(APIError) in
            try await session.api.changeUserid(userid, credential, current: proof, token)
        }
    }

    /// - Parameter newUserid: Nil for the present one.
    private func replaceCredential(
        _ current: Password, _ new: Password, userid newUserid: String?,
        _ send: (SalternAPI, NewCredential, SecretBytes, Token) async throws(APIError) -> CredentialReply
    ) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        let useridBefore = try session.open.userid
        try await session.unconfirmed.settleUnconfirmedChange()
        let opened = try session.open
        let known = try session.keys.knownIterations()
        let old = try await session.keys.proven(current)
        // An earlier request has applied the change.
        if let newUserid, newUserid == opened.userid, newUserid != useridBefore { return }
        let userid = newUserid ?? opened.userid
        let iterations = max(try await newIterations(nil), known)
        let stretched = try await session.keys.stretch(new, userid, iterations)
        for attempt in 1... {
            let (keyring, revision) = try await session.serverKeyring.keyringForSealing()
            let next = try session.keys.numberedForSending(keyring.changed { _ in }, of: userid)
            let (credential, sealed) = try next.credential(
                stretched, iterations, replacing: revision, opened.account)
            try session.unconfirmed.noteUnconfirmed(
                .credential(.init(userid: userid, iterations: iterations)), replacing: revision,
                password: stretched.known, under: opened.password)
            let reply: CredentialReply?
            do throws(APIError) {
                reply = try await session.unconfirmed.sendChange { () throws(APIError) in
                    try await credential.sent(noting: session.store) { credential throws(APIError) in
                        try await send(session.api, credential, old.passwordKey, opened.token)
                    }
                } orFindsDone: {
                    session.opened?.password.matches(stretched) ?? false
                }
            } catch {
                // Another device has changed the keyring, which has to be sealed again.
                if error.code == .keyringChanged, attempt < 3 { continue }
                throw VaultError(error)
            }
            guard let reply else { return }
            try session.keys.rememberChange(
                of: opened, userid, iterations, reply.deviceToken, next, sealed, reply.keyringRevision,
                stretched.known)
            return try session.unconfirmed.forgetUnconfirmed()
        }
    }

    /// Returns the proof of a password for the server.
    func proof(_ password: Password) async throws(VaultError) -> SecretBytes {
        try await session.unconfirmed.settleBeforeProof()
        return try await session.keys.proven(password).passwordKey
    }

    // MARK: Iterations

    /// Returns the highest of the minimums of app, server and caller. The server's number counts up to
    /// ``StretchingRule/automaticIterationLimit``.
    func newIterations(_ wanted: Int?) async throws(VaultError) -> Int {
        let service = try await session.call { api throws(APIError) in try await api.describeService() }
        guard service.saltPrefix == session.settings.stretching.saltPrefix else { throw .untrustworthy(.saltPrefix) }
        let asked = min(service.kdf.iterations, session.settings.stretching.automaticIterationLimit)
        return max(session.settings.stretching.minimumIterations, asked, wanted ?? 0)
    }

    /// Derives keys from the same password with the iterations that are required now, and makes them the credential.
    /// All other sessions end.
    /// - Returns: nil when it was not done: nothing has changed, and the next log-in repeats it.
    /// - Throws: An error when the outcome is uncertain: the stored credential may be invalid now.
    func raiseIterations(
        from iterations: Int, of password: Password, _ userid: String, _ current: StretchedPassword,
        _ keyring: Keyring, _ login: LoginReply
    ) async throws(VaultError) -> RaisedCredential? {
        if let known = try session.keys.knownAccount(), known != login.accountId { return nil }
        guard let wanted = try? await newIterations(nil), wanted > iterations,
            let stretched = try? await session.keys.stretch(password, userid, wanted)
        else { return nil }
        let next = try session.keys.numberedForSending(keyring.changed { _ in }, of: userid)
        let (credential, sealed) = try next.credential(
            stretched, wanted, replacing: login.keyringRevision, login.accountId)
        do throws(APIError) {
            // The server accepts equal bytes again, so a retry after a lost reply is safe.
            let reply = try await credential.sent(noting: session.store, session.settings.retries) {
                credential throws(APIError) in
                try await session.api.changeCredential(credential, current: current.passwordKey, login.session.token)
            }
            return RaisedCredential(
                opening: (stretched, wanted, next, sealed, reply.keyringRevision), deviceToken: reply.deviceToken)
        } catch {
            if case .problem(let problem) = error, !error.isPassing || problem.status == 429 { return nil }
            throw VaultError(error)
        }
    }

    // MARK: A printed code

    /// Creates a recovery code for a person to print. The previous one becomes invalid.
    func makeRecoveryCode(password: Password) async throws(VaultError) -> RecoveryCode {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await session.unconfirmed.settleUnconfirmedChange()
        let opened = try session.open
        let iterations = try session.keys.knownIterations()
        let proof = try await session.keys.proven(password)
        let code = RecoveryCode.random()
        let stretched = await code.stretched(by: session.settings.stretching)
        let (keyring, revision) = try await session.serverKeyring.latestKeyring()
        guard let recovery = try? RecoveryKeys.new(for: stretched, account: opened.account) else { throw .unreadable }
        let next = try session.keys.numberedForSending(keyring.changed { $0.recovery = recovery }, of: opened.userid)
        guard let recoveryKeyring = try? recovery.sealedKeyring(next, account: opened.account),
            let sealed = try? next.sealed(under: opened.password)
        else { throw .unreadable }
        // In one request: otherwise later keyrings could be sealed with keys that no code opens.
        let done = UnconfirmedChange.Outcome.recoveryCode(recovery)
        try session.unconfirmed.noteUnconfirmed(done, replacing: revision)
        let written: Revision??
        do throws(APIError) {
            written = try await session.unconfirmed.sendChange { () throws(APIError) in
                try await session.api.setRecovery(
                    recoveryKey: stretched.passwordKey, keyring: recoveryKeyring, accountKeyring: (sealed, revision),
                    currentPasswordKey: proof.passwordKey, opened.token)
            } orFindsDone: {
                (session.opened?.sealer.keyring).map(done.isDone) ?? false
            }
        } catch {
            throw VaultError(error)
        }
        // The code is not lost, because this call returns it.
        guard let written else {
            try session.stored { try session.store.forgetNotices(.recoveryRemoved) }
            return code
        }
        try session.keys.rememberChange(
            of: opened, opened.userid, iterations, nil, next, sealed, written ?? revision, opened.password)
        try session.unconfirmed.forgetUnconfirmed()
        return code
    }

    /// Removes the recovery: no printed code can set a new password.
    func removeRecoveryCode(password: Password) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await session.unconfirmed.settleUnconfirmedChange()
        let opened = try session.open
        let iterations = try session.keys.knownIterations()
        let proof = try await session.keys.proven(password)
        // The server comes first. After an interruption the keyring names an invalid code, and the next attempt
        // continues.
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in
                try await session.api.removeRecovery(currentPasswordKey: proof.passwordKey, opened.token)
            })
        } catch {
            guard case .problem(let problem) = error, problem.status == 404 else { throw VaultError(error) }
        }
        for attempt in 1... {
            let (keyring, revision) = try await session.serverKeyring.latestKeyring()
            guard keyring.recovery != nil else { return }
            let next = try session.keys.numberedForSending(keyring.changed { $0.recovery = nil }, of: opened.userid)
            guard let sealed = try? next.sealed(under: opened.password) else { throw .unreadable }
            let written: Revision
            do throws(APIError) {
                written = try await session.settings.retries({ () throws(APIError) in
                    try await session.api.putKeyring(sealed, .revision(revision), opened.token)
                })
            } catch {
                if case .problem(let problem) = error, problem.status == 412, attempt < 3 { continue }
                throw VaultError(error)
            }
            return try session.keys.rememberChange(
                of: opened, opened.userid, iterations, nil, next, sealed, written, opened.password)
        }
    }
}
