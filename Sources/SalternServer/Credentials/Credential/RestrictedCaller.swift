internal import Postgres

/// A caller whose session was opened by a recovery. Setting a new credential ends the session.
struct RestrictedCaller: Sendable {
    let caller: Caller
    let userid: Userid
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the credential to replace.
    let credentialRevision: Int64
    let sessionExpiresAt: Timestamp
}

extension Authorization {
    /// Changes the account of a caller with a restricted session in one transaction, with the account's row locked like
    /// ``change(as:use:_:)``.
    ///
    /// - Throws: ``Unauthenticated``, ``CurrentKeyMissing`` if the session is not restricted, an error of `body`, or a
    ///   `PostgresError`.
    func changeRestricted<Result>(
        _ body: (Transaction, RestrictedCaller) async throws -> Result
    ) async throws -> Result {
        // Requests without a session never lock the account.
        try require(try await database.execute(FindAnySession(caller: caller)).first)
        return try await database.withTransaction(key: key) { transaction in
            // Two statements: the second takes its snapshot after the lock.
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
                    kdfIterations: login.kdfIterations, credentialRevision: session.credentialRevision,
                    sessionExpiresAt: session.expiresAt))
        }
    }

    /// Checks the session. It may be restricted, or ended by an earlier copy of this request.
    ///
    /// - Returns: The account.
    /// - Throws: ``Unauthenticated``, or a `PostgresError`.
    func identifyAny() async throws -> AccountID {
        let find = FindCompletedRecovery(accountID: accountID, tokenHash: tokenHash, now: now)
        let (sessions, completed) = try await database.execute(FindAnySession(caller: caller), find)
        guard !sessions.isEmpty || !completed.isEmpty else { throw Unauthenticated() }
        return accountID
    }

    /// Returns the outcome of a change by a restricted session, which that change ended. Nil if the request does not
    /// repeat one. The new key is checked like any other secret.
    ///
    /// - Throws: ``Unauthenticated`` if the key differs, ``TooManyAttempts``, ``CredentialProblem/keyringChanged``, or
    ///   a `PostgresError`.
    func outcomeOfRestrictedRetry(_ new: NewCredential) async throws -> CredentialChange.Outcome? {
        let find = FindCompletedRecovery(accountID: accountID, tokenHash: tokenHash, now: now)
        guard let completed = try await database.execute(find).first else { return nil }
        let (accountID, tokenHash, iterations, verifier) = (accountID, tokenHash, new.iterations, new.verifier)
        let generation = try await attempt(completed.userid).run { check -> CheckResult<Int64> in
            guard let login = check.login, login.accountID == accountID,
                login.credentialRevision == completed.credentialRevision
            else { return .undecided(Unauthenticated()) }
            guard verifier == login.verifier, iterations == login.kdfIterations else {
                return .wrong(.currentKey, Unauthenticated())
            }
            return .right(login.deviceGeneration)
        }
        authenticatedAccount = accountID
        let (keyrings, holders) = try await database.execute(
            Owned(accountID: accountID, read: FindKeyring()), Owned(accountID: accountID, read: FindKeyHolders()))
        guard new.isStored(in: keyrings.first) else { throw CredentialProblem.keyringChanged }
        return CredentialChange.Outcome(
            sessionsEnded: 0, keyringRevision: holders.first?.keyringRevision,
            hasRecovery: holders.first?.hasRecovery ?? false,
            device: .ofSession(accountID, tokenHash, generation: generation))
    }

    @discardableResult
    private func require(_ session: FindAnySession.Row?) throws -> FindAnySession.Row {
        guard let session else { throw Unauthenticated() }
        authenticatedAccount = accountID
        guard session.isRestricted else { throw CurrentKeyMissing() }
        return session
    }
}

/// Finds the caller's session if it is live, restricted or not, with userid and number of the account's credential.
struct FindAnySession: Statement {
    let caller: Caller

    struct Row: Sendable {
        let isRestricted: Bool
        let userid: Userid
        let credentialRevision: Int64
        let expiresAt: Timestamp
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.restricted, a.userid, a.credential_revision, s.expires_at
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(\.caller.accountID) AND s.token_hash = \(\.caller.tokenHash)
            AND \(SessionLiveness.hasNotEnded("s", at: "\(\.caller.now)", idleSince: "\(\.caller.idleSince)"))
            AND a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the account whose present credential the caller's restricted session set before it ended.
struct FindCompletedRecovery: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let now: Timestamp

    struct Row: Sendable {
        let userid: Userid
        let credentialRevision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.userid, a.credential_revision
        FROM saltern.recoveries r JOIN saltern.accounts a ON a.account_id = r.account_id
        WHERE r.account_id = \(\.accountID) AND a.account_id = \(\.accountID)
            AND r.completed_token_hash = \(\.tokenHash) AND r.completed_until > \(\.now)
            AND r.completed_revision = a.credential_revision AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
