internal import Cryptography
internal import Foundation

extension Vault {
    /// Notes what is about to be sent: from now on it may be done.
    /// - Parameters:
    ///   - password: The password that it sets, if it sets one.
    ///   - current: The password of before.
    func noteUnconfirmed(
        _ outcome: UnconfirmedChange.Outcome, replacing revision: Revision, password: KnownPassword? = nil,
        under current: KnownPassword? = nil
    ) throws(VaultError) {
        try stored {
            let change = UnconfirmedChange(replacing: revision, outcome: outcome)
            let encoded = try [UInt8](JSONEncoder().encode(change))
            var sealed: SecureBytes?
            if let password, let current { sealed = try sealedForChange(password, under: current) }
            try deviceSecrets.change([.unconfirmedPassword: sealed]) { try store.set(.unconfirmedChange, encoded) }
        }
    }

    /// Its end was seen.
    /// - Parameter losesCode: Whether a printed code was made that the person has not seen.
    func forgetUnconfirmed(losesCode: Bool = false) throws(VaultError) {
        if store.isClosed { return }
        try stored {
            let hasSecret = try store.fact(.unconfirmedPassword) != nil
            let forget = { [store] in
                if losesCode { try store.note(.recoveryRemoved) }
                try store.set(.unconfirmedChange, nil)
            }
            if hasSecret {
                try deviceSecrets.change([.unconfirmedPassword: nil], forget)
            } else {
                try store.transaction(forget)
            }
        }
    }

    func unconfirmedChange() throws(VaultError) -> UnconfirmedChange? {
        guard let fact = try stored({ try store.fact(.unconfirmedChange) }) else { return nil }
        guard let change = try? JSONDecoder().decode(UnconfirmedChange.self, from: Data(fact)) else {
            throw .store(.damaged)
        }
        return change
    }

    /// The userid that the account has when a change of it was done, and nobody has seen that here.
    func unconfirmedUserid() throws(VaultError) -> String? {
        guard case .credential(let credential)? = try unconfirmedChange()?.outcome else { return nil }
        return credential.userid
    }

    /// Sends a change, and finds out what became of it when no reply says so.
    /// - Returns: nil when it was done, and noted here.
    /// - Throws: What was answered, when it was not done, or when nobody can tell yet: then the next call finds out.
    func sendChange<Reply: Sendable>(
        _ send: () async throws(APIError) -> Reply, orFindsDone isDone: () -> Bool
    ) async throws(APIError) -> Reply? {
        var mayBeDone = false
        do throws(APIError) {
            // The same bytes again are a success: only the reply was lost then.
            return try await settings.retries({ () throws(APIError) in
                do throws(APIError) { return try await send() } catch {
                    mayBeDone = mayBeDone || error.mayBeDone
                    throw error
                }
            })
        } catch {
            if mayBeDone {
                try? await settleUnconfirmedChange()
                if isDone() { return nil }
            } else {
                try? forgetUnconfirmed()
            }
            throw error
        }
    }

    /// For who has no turn, and is about to show the server what the person has typed. Whoever has it is not waited for: who
    /// leaves would wait for a silent server.
    func settleBeforeProof() async throws(VaultError) {
        guard !serverLock.isLocked, try unconfirmedChange() != nil else { return }
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await settleUnconfirmedChange()
    }

    /// Finds out what has come of a change whose end was not seen. When it is done, this device goes on with it; otherwise
    /// the keyring is replaced by an equal one, so that a request that is still under way changes nothing.
    func settleUnconfirmedChange() async throws(VaultError) {
        guard let change = try unconfirmedChange() else { return }
        for _ in 0..<3 {
            let opened = try open
            let reply = try await call { api throws(APIError) in try await api.getKeyring(opened.token) }
            // Locked or logged in anew meanwhile: then these keys are not to be kept.
            guard let current = self.opened, current.engine === opened.engine else { throw .locked }
            // Whoever says that there is none proves nothing.
            guard let reply else { return }
            if let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) {
                if try order(of: keyring, openedBy: opened.password) == .rolledBack {
                    return try stored { try store.note(.keyringRolledBack) }
                }
                if reply.revision == change.replacing {
                    guard try await replaceByEqual(keyring, reply.revision, opened) else { continue }
                } else {
                    try await takeLaterKeyring()
                }
                return try forgetUnconfirmed(losesCode: change.outcome.isDone(in: keyring))
            }
            guard case .credential(let credential) = change.outcome,
                let password = try self.password(of: credential, under: opened.password),
                let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: password)
            else { return }
            guard try order(of: keyring, openedBy: opened.password) == .later else {
                return try stored { try store.note(.keyringRolledBack) }
            }
            try rememberChange(
                of: opened, credential.userid, credential.iterations, nil, keyring, reply.keyring.bytes,
                reply.revision, password)
            return try forgetUnconfirmed()
        }
        throw .unavailable(.unexpectedReply)
    }

    /// - Returns: Whether that is over. Otherwise the server's keyring was changed meanwhile.
    private func replaceByEqual(
        _ keyring: Keyring, _ revision: Revision, _ opened: Opened
    ) async throws(VaultError) -> Bool {
        let next = try numberedForSending(keyring.changed { _ in })
        guard let sealed = try? next.sealed(under: opened.password) else { throw .unreadable }
        let recoveryKeyring = try recoveryKeyring(of: next, opened.account)
        let written: Revision
        do throws(APIError) {
            written = try await settings.retries({ () throws(APIError) in
                try await api.putKeyring(
                    sealed, recoveryKeyring: recoveryKeyring, .revision(revision), opened.token)
            })
        } catch {
            if error.code == .preconditionFailed { return false }
            // What is refused now will be refused again; syncing is not to wait for it.
            if error.isRefusal, error.code != .unauthenticated { return true }
            throw VaultError(error)
        }
        guard let current = self.opened, current.engine === opened.engine else { throw .locked }
        try rememberChange(
            of: opened, opened.userid, try knownIterations(), nil, next, sealed, written, opened.password)
        return true
    }
}
