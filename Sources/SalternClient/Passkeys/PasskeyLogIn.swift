internal import Cryptography

/// Log-ins by passkey: alone, and after the password.
enum PasskeyLogIn {
    /// Opens a session by a passkey alone, and the keyring with it.
    static func run(_ authenticator: any PasskeyAuthenticator, in vault: isolated Vault) async throws(VaultError) {
        let locks = vault.session.lockCount
        let options = try await vault.call { api throws(APIError) in try await api.beginPasskeyLogIn() }
        let answer = try await answer(options, by: authenticator, prf: PasskeyKeys.input, in: vault)
        let output = try answer.unlockingOutput
        let reply: PasskeyLoginReply
        // An answer is valid for one log-in. After a lost reply the same answer is rejected.
        do throws(APIError) {
            reply = try await vault.api.logInWithPasskey(answer.assertion, deviceName: vault.settings.deviceName)
        } catch {
            throw VaultError(error)
        }
        try await vault.usingNewSession(reply.session.token) { () async throws(VaultError) in
            if let known = try vault.knownAccount(), known != reply.accountId { throw .otherAccount }
            let (password, keyring, sealed, keys) = try reply.opened(by: answer.assertion.id.bytes, output)
            guard try vault.knows(keys) else { throw .passkey(.unconfirmed) }
            if try vault.order(of: keyring, openedBy: password) == .rolledBack {
                try vault.stored { try vault.store.note(.keyringRolledBack) }
                throw .keyringUnusable
            }
            let (userid, iterations) = try await parameters(of: reply.session.token, in: vault)
            try vault.remember(
                account: reply.accountId, userid: userid, iterations: iterations, session: reply.session.token,
                device: nil, keyring: keyring, sealed: sealed, keyringRevision: reply.keyringRevision, password,
                opens: locks == vault.session.lockCount)
        }
    }

    /// Returns userid and iterations, which later calls need for the password.
    private static func parameters(
        of token: Token, in vault: isolated Vault
    ) async throws(VaultError) -> (userid: String, iterations: Int) {
        let userid = try await vault.call { api throws(APIError) in try await api.getAccount(token) }.userid
        let parameters = try await vault.call { api throws(APIError) in
            try await api.getKDFParameters(userid: userid)
        }
        do throws(StretchingRule.Refusal) {
            try vault.settings.stretching.check(parameters, userid: userid)
        } catch {
            throw .untrustworthy(error)
        }
        // Otherwise the server could choose the salt of the next password key.
        if let known = try vault.stored({ try vault.store.text(.userid) }), known != userid {
            throw .passkey(.unconfirmed)
        }
        try vault.refuseFewer(parameters.iterations, wasRestored: false)
        return (userid, parameters.iterations)
    }

    /// Sends a log-in with the password again, with the answer of a passkey.
    /// - Parameter failure: The reply without it. It has the options where the account has passkeys.
    static func repeated(
        after failure: APIError, _ userid: String, _ password: StretchedPassword, _ device: DeviceClaim,
        _ authenticator: (any PasskeyAuthenticator)?, in vault: isolated Vault
    ) async throws(VaultError) -> LoginReply {
        guard failure.code == .secondFactorRequired, case .problem(let problem) = failure,
            let options = problem.publicKey, let authenticator
        else { throw VaultError(failure) }
        let answer = try await answer(options, by: authenticator, prf: nil, in: vault)
        do throws(APIError) {
            return try await vault.api.logIn(
                userid: userid, passwordKey: password.passwordKey, device: device, passkey: answer.assertion)
        } catch {
            throw VaultError(error)
        }
    }

    private static func answer(
        _ options: PasskeyRequestOptions, by authenticator: any PasskeyAuthenticator, prf input: [UInt8]?,
        in vault: isolated Vault
    ) async throws(VaultError) -> PasskeyAnswer {
        try PasskeySite(vault.settings.transport).check(options.rpId)
        do throws(PasskeyError) { return try await authenticator.get(options, prf: input) } catch {
            throw .passkey(error)
        }
    }
}

extension PasskeyLoginReply {
    /// Opens the unlock box, and the keyring with it.
    fileprivate func opened(
        by id: [UInt8], _ output: SecureBytes
    ) throws(VaultError) -> (KnownPassword, Keyring, sealed: [UInt8], PasskeyKeys) {
        guard let unlock else { throw .passkey(.doesNotUnlock) }
        guard let sealed = keyring?.bytes,
            let (unlockKey, keys) = try? PasskeyKeys.open(
                unlock.box.bytes, unlock.sealedPrivateKey.bytes, of: id, output: output, account: accountId)
        else { throw .keyringUnusable }
        let password = KnownPassword(unlockKey: unlockKey)
        guard let keyring = try? Keyring(sealed: sealed, openedBy: password) else { throw .keyringUnusable }
        return (password, keyring, sealed, keys)
    }
}
