internal import Cryptography

/// A credential with more iterations, and what it opens.
struct RaisedCredential {
    var opening: (StretchedPassword, iterations: Int, Keyring, sealed: [UInt8], keyringRevision: Revision?)
    var deviceToken: Token?
}

extension Vault {
    /// What the password is stretched with here; 0 when nobody was logged in.
    func knownIterations() throws(VaultError) -> Int {
        Int(try stored { try store.number(.iterations) } ?? 0)
    }

    /// No account's iterations are ever lowered: a server that names fewer than were used here wants a key that is easier to
    /// guess.
    /// - Parameter wasRestored: Whether a person says that its database was, which may be from before they were raised.
    func refuseFewer(_ iterations: Int, wasRestored: Bool) throws(VaultError) {
        let known = try knownIterations()
        guard iterations >= known || wasRestored else { throw .untrustworthy(.iterations(minimum: known)) }
    }

    /// A recovery sets at least as many iterations as the account has, and only the server says how many these are.
    func refuseTooMany(_ iterations: Int, over known: Int) throws(VaultError) {
        let limit = max(settings.stretching.automaticIterationLimit, known)
        guard iterations <= limit else { throw .untrustworthy(.tooManyIterations(maximum: limit)) }
    }

    /// Returns as many iterations as this app, the server and the caller want at least. What the server wants counts up to
    /// ``StretchingRule/automaticIterationLimit``.
    func newIterations(_ wanted: Int?) async throws(VaultError) -> Int {
        let service = try await call { api throws(APIError) in try await api.describeService() }
        guard service.saltPrefix == settings.stretching.saltPrefix else { throw .untrustworthy(.saltPrefix) }
        let asked = min(service.kdf.iterations, settings.stretching.automaticIterationLimit)
        return max(settings.stretching.minimumIterations, asked, wanted ?? 0)
    }

    /// Stretches the same password with as many iterations as are wanted by now, and makes that the credential. All other
    /// sessions end.
    /// - Returns: nil when it was not done: everything is as it was, and the next log-in tries again.
    /// - Throws: When nobody can tell whether it was done: what is known here may open nothing by now.
    func raiseIterations(
        from iterations: Int, of password: Password, _ userid: String, _ current: StretchedPassword,
        _ keyring: Keyring, _ login: LoginReply
    ) async throws(VaultError) -> RaisedCredential? {
        if let known = try knownAccount(), known != login.accountId { return nil }
        guard let wanted = try? await newIterations(nil), wanted > iterations,
            let stretched = try? await stretch(password, userid, wanted)
        else { return nil }
        let next = try numberedForSending(keyring.changed { _ in })
        let (credential, sealed) = try newCredential(
            stretched, wanted, next, replacing: login.keyringRevision, login.accountId)
        do throws(APIError) {
            // The same bytes again are a success: only the reply was lost then.
            let reply = try await settings.retries({ () throws(APIError) in
                try await api.changeCredential(credential, current: current.passwordKey, login.session.token)
            })
            return RaisedCredential(
                opening: (stretched, wanted, next, sealed, reply.keyringRevision), deviceToken: reply.deviceToken)
        } catch {
            if case .problem(let problem) = error, !error.isPassing || problem.status == 429 { return nil }
            throw VaultError(error)
        }
    }
}
