internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// A caller with a session who has presented the account's present password key, or an assertion of a passkey.
struct ProvenCaller: Sendable {
    let caller: Caller
    let userid: Userid
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the present credential.
    let credentialRevision: Int64
    /// The present generation of device tokens.
    let deviceGeneration: Int64
    /// True if the presented key is the previous one and the request's new key is already in place: the request repeats
    /// a change whose reply was lost.
    let hasBeenReplaced: Bool
    /// The assertion, which ``Authorization/change(as:use:_:)`` records and uses up. Nil for a password key.
    var passkeyUse: PasskeyUse?

    var accountID: AccountID { caller.accountID }
    var tokenHash: TokenHash { caller.tokenHash }
    var now: Timestamp { caller.now }

    /// The device of the caller's session in the present generation.
    var device: KnownDevice { .ofSession(accountID, tokenHash, generation: deviceGeneration) }
}

extension Authorization {
    /// Checks the `currentPasswordKey` of a request without other members against the caller's account.
    ///
    /// - Throws: Errors of the body, and those of ``prove(_:replacement:)``.
    func prove(_ request: Request) async throws -> ProvenCaller {
        try await prove(JSONBody.read(request) { try $0.required("currentPasswordKey", PasswordKey.init(json:)) })
    }

    /// Checks the password key of a request (`currentPasswordKey`) against the caller's account.
    ///
    /// It is one check with one count, so a stolen token cannot be used to guess the key.
    ///
    /// - Parameters:
    ///   - key: The account's present key according to the caller.
    ///   - replacement: The verifier of the new key. After a change whose reply was lost it is the present one, and
    ///     `key` the previous one. Both together are proof, and one guess for an attacker.
    /// - Throws: ``Unauthenticated``, ``WrongCurrentKey``, ``TooManyAttempts``, or a `PostgresError`.
    func prove(_ key: PasswordKey, replacement: Verifier? = nil) async throws -> ProvenCaller {
        guard let userid = try await read(FindUserid()).first else { throw Unauthenticated() }
        let (caller, previousKeys) = (caller, attempts.previousKeys)
        return try await attempt(userid).run { check -> CheckResult<ProvenCaller> in
            // The account may have left the userid, which now belongs to another account. Its key is not compared.
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

    /// Checks the proof of a request against the caller's account.
    ///
    /// - Throws: ``WrongPasskey`` for an assertion; also the errors of ``prove(_:replacement:)``.
    func prove(_ proof: CallerProof, replacement: Verifier? = nil) async throws -> ProvenCaller {
        switch proof {
        case .passwordKey(let key): return try await prove(key, replacement: replacement)
        case .assertion(let assertion):
            let passkeys = try await read(FindUsablePasskey(id: assertion.response.id))
            let use = try assertion.verify(by: caller, passkeys.first)
            guard let userid = try await read(FindUserid()).first else { throw Unauthenticated() }
            // The account may have left the userid, which now belongs to another account.
            guard let login = try await database.execute(FindLogin(userid: userid)).first,
                login.accountID == accountID
            else { throw WrongCurrentKey() }
            return ProvenCaller(
                caller: caller, userid: userid, verifier: login.verifier, kdfIterations: login.kdfIterations,
                credentialRevision: login.credentialRevision, deviceGeneration: login.deviceGeneration,
                hasBeenReplaced: false, passkeyUse: use)
        }
    }

    /// Changes the account of a proven caller in one transaction. It locks the account's row `FOR UPDATE` first, which
    /// excludes log-ins and writes.
    ///
    /// - Parameter use: ``longUse`` for more than a few statements.
    /// - Throws: ``Unauthenticated`` if the session has ended meanwhile, ``WrongCurrentKey`` if the credential has
    ///   changed meanwhile, ``WrongPasskey`` if the assertion was used, ``TooManyPasskeyUses``, an error of `body`, or
    ///   a `PostgresError`.
    func change<Result>(
        as proven: ProvenCaller, use: LeaseUse = .short, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await database.withTransaction(key: key, use: use) { transaction in
            // Two statements: the second takes its snapshot after the lock.
            let (_, credentials) = try await transaction.execute(
                LockAccountWholly(accountID: accountID), FindCredentialRevision(caller: caller))
            guard let revision = credentials.first else { throw Unauthenticated() }
            guard revision == proven.credentialRevision else { throw WrongCurrentKey() }
            if let use = proven.passkeyUse { try await transaction.record(use, of: accountID, now: now) }
            return try await body(transaction)
        }
    }
}

extension Transaction {
    /// Records the use of a passkey in place of the password key, and uses up its challenge.
    fileprivate func record(_ use: PasskeyUse, of accountID: AccountID, now: Timestamp) async throws {
        let recorded = try await execute(RecordPasskeyUse(accountID: accountID, use: use, now: now))
        guard !recorded.isEmpty, try await spend(use.challenge, of: accountID, now: now) else {
            throw WrongPasskey(accountID: accountID, failure: .wrongChallenge, isInSession: true)
        }
    }
}

/// The error of a wrong present password key.
struct WrongCurrentKey: ProblemConvertible {
    var problem: Problem {
        Problem(
            .forbidden, "wrong_credentials", detail: "`currentPasswordKey` is not the account's present password key.",
            field: "currentPasswordKey")
    }
}

/// The error of a missing present password key outside a restricted session.
struct CurrentKeyMissing: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "missing_member", detail: "The member `currentPasswordKey` is missing.",
            field: "currentPasswordKey")
    }
}

/// Finds the caller's userid.
struct FindUserid: AccountRead {
    typealias Row = Userid

    static let sql: AccountSQL<Self> = "SELECT userid FROM saltern.accounts a WHERE a.account_id = \(.account)"
}

/// Finds the number of the account's credential. Returns no row if the session is not live or the account is locked.
struct FindCredentialRevision: Statement {
    typealias Row = Int64

    let caller: Caller

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.credential_revision FROM saltern.accounts a
        WHERE a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL AND \(Caller.hasLiveSession, from: \.caller)
        """
}
