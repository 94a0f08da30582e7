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
    /// Whether the key that was shown is the one that shall replace the present one, and has replaced it already: this
    /// is the retry of a change whose reply was lost.
    let hasBeenReplaced: Bool

    var accountID: AccountID { caller.accountID }
    var tokenHash: TokenHash { caller.tokenHash }
    var now: Timestamp { caller.now }
}

extension Authorization {
    /// Compares a password key with that of the caller's account: what dangerous calls carry as `currentPasswordKey`.
    ///
    /// Failures are counted for the session, so that a stolen token does not serve to guess the key.
    ///
    /// - Parameters:
    ///   - key: What the caller says is the account's present key.
    ///   - replacement: The verifier of the key that shall replace it. Having that one proves as much: after a change
    ///     whose reply was lost it is the present key.
    /// - Throws: ``Unauthenticated``, ``WrongCurrentKey``, ``TooManyAttempts``, or a `PostgresError`.
    func prove(_ key: PasswordKey, replacement: Verifier? = nil) async throws -> ProvenCaller {
        guard let userid = try await read(FindUserid()).first else { throw Unauthenticated() }
        let subject = attempts.subjects.session(caller)
        return try await attempts.turn(subject) {
            let (logins, failures) = try await database.execute(
                FindLogin(userid: userid), FindFailedAttempts(subject: subject))
            let streak = try attempts.admit(failures)
            let isPresent = key.verifier == logins.first?.verifier
            let hasBeenReplaced = !isPresent && replacement == logins.first?.verifier
            guard let login = logins.first, login.accountID == accountID, isPresent || hasBeenReplaced else {
                try await attempts.recordFailure(subject)
                throw WrongCurrentKey()
            }
            await attempts.recordSuccess(subject, after: streak, of: accountID)
            return ProvenCaller(
                caller: caller, userid: userid, verifier: login.verifier, kdfIterations: login.kdfIterations,
                credentialRevision: login.credentialRevision, hasBeenReplaced: hasBeenReplaced)
        }
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

/// A call that only a restricted session may make without the present password key was made without it.
struct CurrentKeyMissing: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "missing_member", detail: "A member is missing.", field: "currentPasswordKey")
    }
}
