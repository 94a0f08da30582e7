internal import HTTPCore
internal import Postgres

/// A caller who has shown the account's present password key besides a session: who may do what is dangerous.
struct ProvenCaller: Sendable {
    let caller: Caller
    let userid: Userid
    let verifier: Verifier
    let kdfIterations: Int32
    /// The present credential.
    let credentialRevision: Int64
    /// Which tokens of devices are the present ones.
    let deviceGeneration: Int64
    /// Whether the key that was shown is the one before, and the one that shall replace it has replaced it already: this
    /// is the retry of a change whose reply was lost.
    let hasBeenReplaced: Bool

    var accountID: AccountID { caller.accountID }
    var tokenHash: TokenHash { caller.tokenHash }
    var now: Timestamp { caller.now }

    /// The device of the caller's session, in the present generation.
    var device: KnownDevice { .ofSession(accountID, tokenHash, generation: deviceGeneration) }
}

extension Authorization {
    /// Compares the `currentPasswordKey` of a request whose body has nothing else with the key of the caller's account.
    /// - Throws: What is wrong with the body, and as ``prove(_:replacement:)`` does.
    func prove(_ request: Request) async throws -> ProvenCaller {
        try await prove(JSONBody.read(request) { try $0.required("currentPasswordKey", PasswordKey.init(json:)) })
    }

    /// Compares a password key with that of the caller's account: what dangerous calls carry as `currentPasswordKey`.
    ///
    /// One look, one count: a stolen token does not serve to guess the key.
    ///
    /// - Parameters:
    ///   - key: What the caller says is the account's present key.
    ///   - replacement: The verifier of the key that shall replace it. After a change whose reply was lost it is the
    ///     present key, and the other one the key before: having both proves as much, and is one guess to who has not.
    /// - Throws: ``Unauthenticated``, ``WrongCurrentKey``, ``TooManyAttempts``, or a `PostgresError`.
    func prove(_ key: PasswordKey, replacement: Verifier? = nil) async throws -> ProvenCaller {
        guard let userid = try await read(FindUserid()).first else { throw Unauthenticated() }
        let (caller, previousKeys) = (caller, attempts.previousKeys)
        return try await attempt(userid).run { check -> CheckResult<ProvenCaller> in
            // The userid may have been left meanwhile, and taken by somebody else, whose key is not looked at.
            guard let login = check.login, login.accountID == caller.accountID else {
                return .undecided(WrongCurrentKey())
            }
            let isPresent = key.verifier == login.verifier
            let isPrevious = previousKeys.fits(login.previousKey, key.verifier, of: caller.accountID)
            let hasBeenReplaced = !isPresent && isPrevious && replacement == login.verifier
            guard isPresent || hasBeenReplaced else { return .wrong(.currentKey, WrongCurrentKey()) }
            return .right(
                ProvenCaller(
                    caller: caller, userid: userid, verifier: login.verifier, kdfIterations: login.kdfIterations,
                    credentialRevision: login.credentialRevision, deviceGeneration: login.deviceGeneration,
                    hasBeenReplaced: hasBeenReplaced))
        }
    }

    /// Changes the account of a proven caller in one transaction, all or nothing. The account's row is locked
    /// `FOR UPDATE` first, which keeps out log-ins as well as writes.
    /// - Parameter use: ``longUse`` for what takes longer than a few statements.
    /// - Throws: ``Unauthenticated`` when the session has ended meanwhile, ``WrongCurrentKey`` when the credential has
    ///   changed meanwhile, what `body` throws, or a `PostgresError`.
    func change<Result>(
        as proven: ProvenCaller, use: LeaseUse = .short, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await database.withTransaction(key: key, use: use) { transaction in
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
            .forbidden, "wrong_credentials", detail: "`currentPasswordKey` is not the account's present password key.",
            field: "currentPasswordKey")
    }
}

/// A call that only a restricted session may make without the present password key was made without it.
struct CurrentKeyMissing: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "missing_member", detail: "The member `currentPasswordKey` is missing.",
            field: "currentPasswordKey")
    }
}
