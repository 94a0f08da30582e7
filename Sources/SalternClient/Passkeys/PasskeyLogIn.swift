internal import Cryptography

/// Log-ins by passkey: alone, and after the password.
struct PasskeyLogIn {
    let session: VaultSession

    /// Opens a session by a passkey alone, and the keyring with it.
    func run(_ authenticator: any PasskeyAuthenticator) async throws(VaultError) {
        let locks = session.lockCount
        let options = try await session.call { api throws(APIError) in try await api.beginPasskeyLogIn() }
        let answer = try await answer(options, by: authenticator, prf: PasskeyKeys.input)
        let output = try answer.unlockingOutput
        let reply = try await opening { () throws(APIError) in
            try await session.api.logInWithPasskey(answer.assertion, deviceName: session.settings.deviceName)
        }
        try await session.usingNewSession(reply.session.token) { () async throws(VaultError) in
            if let known = try session.keys.knownAccount(), known != reply.accountId { throw .otherAccount }
            let (password, keyring, sealed, keys) = try reply.opened(by: answer.assertion.id.bytes, output)
            guard try confirms(keys) else { throw .passkey(.unconfirmed) }
            if try session.keys.order(of: keyring, openedBy: password) == .rolledBack {
                try session.stored { try session.store.note(.keyringRolledBack) }
                throw .keyringUnusable
            }
            let (userid, iterations) = try await parameters(of: reply.session.token, keyring)
            try session.keys.remember(
                account: reply.accountId, userid: userid, iterations: iterations, session: reply.session.token,
                device: nil, keyring: keyring, sealed: sealed, keyringRevision: reply.keyringRevision, password,
                opens: locks == session.lockCount)
        }
    }

    /// Returns true when the known keyring has these keys, and on a device without a known keyring. A store of 0.9.0
    /// does not have the digests, and its keyring has no passkeys.
    private func confirms(_ keys: PasskeyKeys) throws(VaultError) -> Bool {
        guard let known = try session.stored({ try session.store.fact(.passkeys) }) else {
            return try session.keys.knownAccount() == nil
        }
        let digest = keys.digest
        return stride(from: 0, to: known.count, by: digest.count).contains { known[$0...].starts(with: digest) }
    }

    /// Returns userid and iterations, which later calls need for the password.
    ///
    /// - Throws: ``PasskeyError/unconfirmed`` if neither the keyring nor this device confirms the server's userid. The
    ///   server could otherwise choose the salt of the next password key.
    private func parameters(
        of token: Token, _ keyring: Keyring
    ) async throws(VaultError) -> (userid: String, iterations: Int) {
        let userid = try await session.call { api throws(APIError) in try await api.getAccount(token) }.userid
        let known = try session.keys.userid
        let confirmed = keyring.useridMark ?? known.map(UseridMark.init(of:))
        guard confirmed == UseridMark(of: userid) else { throw .passkey(.unconfirmed) }
        return (userid, try await session.keys.parameters(of: userid, wasRestored: false).iterations)
    }

    /// Sends a log-in with the password again, with the answer of a passkey.
    /// - Parameter failure: The reply without it. It has the options where the account has passkeys.
    func repeated(
        after failure: APIError, _ userid: String, _ password: StretchedPassword, _ device: DeviceClaim,
        _ authenticator: (any PasskeyAuthenticator)?
    ) async throws(VaultError) -> LoginReply {
        guard failure.code == .secondFactorRequired, case .problem(let problem) = failure,
            let options = problem.publicKey, let authenticator
        else { throw VaultError(failure) }
        let answer = try await answer(options, by: authenticator, prf: nil)
        return try await opening { () throws(APIError) in
            try await session.api.logIn(
                userid: userid, passwordKey: password.passwordKey, device: device, passkey: answer.assertion)
        }
    }

    /// Sends an answer, which opens one session, and repeats it where no reply arrives.
    /// - Throws: ``VaultError/unavailable(_:)`` if a repeated answer is rejected: the first request has opened the
    ///   session, and its reply is lost. The session ends unused.
    private func opening<Reply: Sendable>(
        _ send: () async throws(APIError) -> Reply
    ) async throws(VaultError) -> Reply {
        var uncertain: APIError?
        do throws(APIError) {
            return try await session.settings.retries({ () throws(APIError) in
                do throws(APIError) { return try await send() } catch {
                    if error.mayBeDone { uncertain = error }
                    throw error
                }
            })
        } catch {
            if error.code == .wrongPasskey, let uncertain { throw VaultError(uncertain) }
            throw VaultError(error)
        }
    }

    private func answer(
        _ options: PasskeyRequestOptions, by authenticator: any PasskeyAuthenticator, prf input: [UInt8]?
    ) async throws(VaultError) -> PasskeyAnswer {
        try PasskeySite(session.settings.transport).check(options.rpId)
        guard PasskeyKeys.canBelong(options.allowCredentials.map(\.id)) else { throw .unavailable(.unexpectedReply) }
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
