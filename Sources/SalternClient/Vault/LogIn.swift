internal import Cryptography

/// Opens a vault by a registration, a log-in or a printed code.
struct LogIn {
    let session: VaultSession

    func signUp(
        _ userid: String, _ password: Password, _ iterations: Int?, _ invite: String?
    ) async throws(VaultError) {
        try session.keys.refuseOther(userid)
        let iterations = try await session.credentials.newIterations(iterations)
        let stretched = try await session.keys.stretch(password, userid, iterations)
        let keyring = try session.keys.numberedForSending(.new(), of: userid)
        guard let sealed = try? keyring.sealed(under: stretched) else { throw .unreadable }
        let invite = invite.map { Token(SecureBytes(copying: PastedText.trimmed($0).utf8)) }
        let reply: RegistrationReply
        do throws(APIError) {
            reply = try await session.settings.retries(
                { () throws(APIError) in
                    try await session.api.register(
                        userid: userid, passwordKey: stretched.passwordKey, iterations: iterations, keyring: sealed,
                        deviceName: session.settings.deviceName, invite: invite)
                })
        } catch {
            // If a reply was lost, the account may exist already, and the log-in succeeds.
            if error.code == .useridTaken, (try? await logIn(userid, password, nil)) != nil { return }
            throw VaultError(error)
        }
        try session.keys.remember(
            account: reply.accountId, userid: userid, iterations: iterations, session: reply.session.token,
            device: reply.deviceToken, keyring: keyring, sealed: sealed, keyringRevision: nil, stretched.known,
            opens: true)
    }

    /// Logs in with the known userid, or with the new one of a change whose outcome is uncertain.
    func logIn(
        asKnown userid: String, _ password: Password, _ code: String?, _ restoringKeyring: Bool,
        _ authenticator: (any PasskeyAuthenticator)?
    ) async throws(VaultError) {
        let next = try session.unconfirmed.unconfirmedUserid()
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
        if !renamed { try session.keys.refuseOther(userid) }
        let code = try code.map(PastedText.oneTimeCode)
        let locks = session.lockCount
        let parameters = try await session.keys.parameters(of: userid, wasRestored: restoringKeyring)
        var stretched = try await session.keys.stretch(password, userid, parameters.iterations)
        let device = DeviceClaim(
            name: session.settings.deviceName, token: try session.secret(.deviceToken).map(Token.init))
        // A code is valid for one log-in. After a lost reply the same code is rejected.
        let retries = code == nil ? session.settings.retries : Retries(attempts: 1)
        let reply: LoginReply
        do throws(APIError) {
            reply = try await retries({ () throws(APIError) in
                try await session.api.logIn(
                    userid: userid, passwordKey: stretched.passwordKey, device: device, code: code)
            })
        } catch {
            reply = try await PasskeyLogIn(session: session).repeated(
                after: error, userid, stretched, device, authenticator)
        }
        try await session.usingNewSession(reply.session.token) { () async throws(VaultError) in
            // The account is another one, whose items must not be mixed with those in the store.
            if renamed, try session.keys.knownAccount() != reply.accountId { throw .otherAccount }
            var (keyring, sealed, revision) = try await keyring(of: reply, userid, stretched, restoringKeyring)
            // The same account had a later keyring before: this one would seal with retired keys.
            if try session.keys.order(of: keyring, openedBy: stretched.known) == .rolledBack {
                try session.stored { try session.store.note(.keyringRolledBack) }
                guard restoringKeyring else { throw .keyringUnusable }
                (keyring, sealed, revision) = try await session.serverKeyring.putKeyringBack(
                    over: keyring, of: reply, userid, stretched)
            }
            var iterations = parameters.iterations
            var deviceToken = reply.deviceToken
            if reply.kdfUpgradeRequired, revision == reply.keyringRevision,
                let raised = try await session.credentials.raiseIterations(
                    from: iterations, of: password, userid, stretched, keyring, reply)
            {
                (stretched, iterations, keyring, sealed, revision) = raised.opening
                deviceToken = raised.deviceToken ?? deviceToken
            }
            try session.keys.remember(
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
        return try await session.serverKeyring.restoreKeyring(over: reply, userid, password, isAgreed: restoring)
    }

    // MARK: Recovering

    func recover(
        _ userid: String, _ code: RecoveryCode, _ password: Password, _ restoringKeyring: Bool
    ) async throws(VaultError) {
        try session.keys.refuseOther(userid)
        let stretched = await code.stretched(by: session.settings.stretching)
        let reply = try await session.call { api throws(APIError) in
            try await api.recover(
                userid: userid, recoveryKey: stretched.passwordKey, deviceName: session.settings.deviceName)
        }
        try await session.usingNewSession(reply.session.token) { () async throws(VaultError) in
            let (opened, sealed) = try reply.keyring(openedBy: stretched, restoring: restoringKeyring)
            let keyring = try notOlder(opened, of: reply.accountId)
            let known = try session.keys.knownIterations()
            try session.settings.stretching.check(recovered: reply.kdf.iterations, over: known)
            let iterations = max(try await session.credentials.newIterations(nil), reply.kdf.iterations, known)
            let new = try await session.keys.stretch(password, userid, iterations)
            let next = try session.keys.numberedForSending(keyring.changed { _ in }, of: userid)
            var (credential, _) = try next.credential(
                new, iterations, replacing: reply.keyringRevision, reply.accountId)
            credential.recoveryKeyring = credential.recoveryKeyring ?? sealed
            do throws(APIError) {
                _ = try await credential.sent(noting: session.store, session.settings.retries) {
                    credential throws(APIError) in
                    try await session.api.changeCredential(credential, current: nil, reply.session.token)
                }
            } catch {
                throw VaultError(error)
            }
        }
    }

    /// Returns the keyring of a code in a form that this device may use. An older keyring must contain all known keys,
    /// is used for no others, and continues from the known counter.
    private func notOlder(_ keyring: Keyring, of account: AccountID) throws(VaultError) -> Keyring {
        guard let knownAccount = try session.keys.knownAccount() else { return keyring }
        guard knownAccount == account else { throw .otherAccount }
        let counter = try session.stored { try session.store.counter(.keyringCounter) }
        let isRetired = try session.stored { try StoreKeys(session.store).isRetired(keyring.currentKey) }
        if keyring.counter > counter, !isRetired { return keyring }
        let ids = try knownKeyIDs()
        let keys = ids.compactMap { try? keyring.key($0) }
        let digest = try session.stored { try session.store.fact(.keyringDigest) }
        let isOther = keyring.counter == counter && digest != nil && digest != keyring.digest
        guard !isRetired, !isOther, !ids.isEmpty, keys.count == ids.count else {
            try session.stored { try session.store.note(.keyringRolledBack) }
            throw .keyringUnusable
        }
        var known = keyring
        known.counter = counter
        known.dataKeys = keys
        return known
    }

    private func knownKeyIDs() throws(VaultError) -> [DataKey.ID] {
        let ids = try session.stored { try StoreKeys(session.store).ids() }
        // A store of an earlier version records them with its next keyring.
        return try ids.isEmpty ? session.keys.keptOpen()?.keyring.dataKeys.map(\.id) ?? [] : ids
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
