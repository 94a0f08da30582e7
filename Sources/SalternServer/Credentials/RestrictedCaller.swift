internal import Postgres

/// A caller whose session was opened by a recovery: it can set a new credential, and that ends it.
struct RestrictedCaller: Sendable {
    let caller: Caller
    let userid: Userid
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that is replaced.
    let credentialRevision: Int64
}

extension Authorization {
    /// Changes the account of a caller with a restricted session in one transaction, all or nothing, with the account's
    /// row locked like ``change(as:_:)`` does.
    /// - Throws: ``Unauthenticated``, ``CurrentKeyMissing`` when the session is not restricted, what `body` throws, or a
    ///   `PostgresError`.
    func changeRestricted<Result>(
        _ body: (Transaction, RestrictedCaller) async throws -> Result
    ) async throws -> Result {
        // Nobody who has no session gets to lock the account.
        try require(try await database.execute(FindAnySession(caller: caller)).first)
        return try await database.withTransaction { transaction in
            // Two statements: the second one's snapshot is taken after the lock.
            let (_, sessions) = try await transaction.execute(
                LockAccountWholly(accountID: accountID), FindAnySession(caller: caller))
            let session = try require(sessions.first)
            guard let login = try await transaction.execute(FindLogin(userid: session.userid)).first else {
                throw Unauthenticated()
            }
            return try await body(
                transaction,
                RestrictedCaller(
                    caller: caller, userid: session.userid, verifier: login.verifier,
                    kdfIterations: login.kdfIterations, credentialRevision: session.credentialRevision))
        }
    }

    @discardableResult
    private func require(_ session: FindAnySession.Row?) throws -> FindAnySession.Row {
        guard let session else { throw Unauthenticated() }
        authenticatedAccount = accountID
        guard session.isRestricted else { throw CurrentKeyMissing() }
        return session
    }
}
