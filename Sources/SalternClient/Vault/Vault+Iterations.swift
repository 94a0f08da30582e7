internal import Cryptography

/// A credential with more iterations, and its keyring.
struct RaisedCredential {
    var opening: (StretchedPassword, iterations: Int, Keyring, sealed: [UInt8], keyringRevision: Revision?)
    var deviceToken: Token?
}

extension Vault {
    /// Returns the iterations of this device's last log-in; 0 when no account is logged in.
    func knownIterations() throws(VaultError) -> Int {
        Int(try stored { try store.number(.iterations) } ?? 0)
    }

    /// Rejects fewer iterations than this device has used. They are never lowered: a hostile server could request a key
    /// that is easier to guess.
    /// - Parameter wasRestored: True when the user has confirmed that the server's database was restored, possibly to a
    ///   time before they were raised.
    func refuseFewer(_ iterations: Int, wasRestored: Bool) throws(VaultError) {
        let known = try knownIterations()
        guard iterations >= known || wasRestored else { throw .untrustworthy(.iterations(minimum: known)) }
    }

    /// Returns the highest of the minimums of app, server and caller. The server's number counts up to
    /// ``StretchingRule/automaticIterationLimit``.
    func newIterations(_ wanted: Int?) async throws(VaultError) -> Int {
        let service = try await call { api throws(APIError) in try await api.describeService() }
        guard service.saltPrefix == settings.stretching.saltPrefix else { throw .untrustworthy(.saltPrefix) }
        let asked = min(service.kdf.iterations, settings.stretching.automaticIterationLimit)
        return max(settings.stretching.minimumIterations, asked, wanted ?? 0)
    }

    /// Derives keys from the same password with the iterations that are required now, and makes them the credential.
    /// All other sessions end.
    /// - Returns: nil when it was not done: nothing has changed, and the next log-in repeats it.
    /// - Throws: An error when the outcome is uncertain: the stored credential may be invalid now.
    func raiseIterations(
        from iterations: Int, of password: Password, _ userid: String, _ current: StretchedPassword,
        _ keyring: Keyring, _ login: LoginReply
    ) async throws(VaultError) -> RaisedCredential? {
        if let known = try knownAccount(), known != login.accountId { return nil }
        guard let wanted = try? await newIterations(nil), wanted > iterations,
            let stretched = try? await stretch(password, userid, wanted)
        else { return nil }
        let next = try numberedForSending(keyring.changed { _ in }, of: userid)
        let (credential, sealed) = try next.credential(
            stretched, wanted, replacing: login.keyringRevision, login.accountId)
        do throws(APIError) {
            // The server accepts equal bytes again, so a retry after a lost reply is safe.
            let reply = try await settings.retries({ () throws(APIError) in
                try await credential.sent(noting: nil) { credential throws(APIError) in
                    try await api.changeCredential(credential, current: current.passwordKey, login.session.token)
                }
            })
            return RaisedCredential(
                opening: (stretched, wanted, next, sealed, reply.keyringRevision), deviceToken: reply.deviceToken)
        } catch {
            if case .problem(let problem) = error, !error.isPassing || problem.status == 429 { return nil }
            throw VaultError(error)
        }
    }
}
