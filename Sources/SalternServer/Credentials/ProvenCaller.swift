internal import HTTPCore
internal import Postgres

/// A caller who has shown the account's present password key besides a session: who may do what is dangerous.
struct ProvenCaller: Sendable {
    let caller: Caller
    let userid: Userid
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that was shown.
    let credentialRevision: Int64

    var accountID: AccountID { caller.accountID }
    var tokenHash: TokenHash { caller.tokenHash }
    var now: Timestamp { caller.now }
}

extension Authorization {
    /// Compares a password key with that of the caller's account: what dangerous calls carry as `currentPasswordKey`.
    /// - Throws: ``Unauthenticated``, ``WrongCurrentKey``, or a `PostgresError`.
    func prove(_ key: PasswordKey) async throws -> ProvenCaller {
        guard let userid = try await read(FindUserid()).first else { throw Unauthenticated() }
        guard let login = try await database.execute(FindLogin(userid: userid)).first, login.accountID == accountID,
            key.verifier == login.verifier
        else { throw WrongCurrentKey() }
        return ProvenCaller(
            caller: caller, userid: userid, verifier: login.verifier, kdfIterations: login.kdfIterations,
            credentialRevision: login.credentialRevision)
    }

    /// Changes the account of a proven caller in one transaction, all or nothing. The account's row is locked
    /// `FOR UPDATE` first, which keeps out log-ins as well as writes.
    /// - Throws: ``Unauthenticated`` when the session has ended meanwhile, ``WrongCurrentKey`` when the credential has
    ///   changed meanwhile, what `body` throws, or a `PostgresError`.
    func change<Result>(
        as proven: ProvenCaller, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await database.withTransaction { transaction in
            // Two statements: the second one's snapshot is taken after the lock.
            let (_, credentials) = try await transaction.execute(
                LockAccountWholly(accountID: accountID), FindCredentialRevision(caller: caller))
            guard let revision = credentials.first else { throw Unauthenticated() }
            guard revision == proven.credentialRevision else { throw WrongCurrentKey() }
            return try await body(transaction)
        }
    }
}

/// The present password key that a dangerous call carried is another.
struct WrongCurrentKey: ProblemConvertible {
    var problem: Problem {
        Problem(
            .forbidden, "wrong_credentials", detail: "This is not the account's present password key.",
            field: "currentPasswordKey")
    }
}
