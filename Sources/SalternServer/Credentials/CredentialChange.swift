internal import Postgres

/// The steps of every change of a credential, for a transaction that holds the account's row `FOR UPDATE`: the verifier
/// and its iterations, the number of the credential in both of its rows, userid and keyring when there are new ones, the
/// end of the sessions, and the event.
struct CredentialChange: Sendable {
    let accountID: AccountID
    /// The userid that the account has now.
    let userid: Userid
    /// The credential that is replaced.
    let credentialRevision: Int64
    let new: NewCredential
    /// The userid that it shall have; nil for the present one.
    var newUserid: Userid?
    /// The session that stays; nil to end all of them.
    let exception: TokenHash?
    let event: SecurityEvent.Kind
    let now: Timestamp

    /// The change that a proven caller asks for; their session stays.
    init(
        by proven: ProvenCaller, to new: NewCredential, userid: Userid? = nil,
        event: SecurityEvent.Kind = .credentialChanged
    ) {
        accountID = proven.accountID
        self.userid = proven.userid
        credentialRevision = proven.credentialRevision
        self.new = new
        newUserid = userid
        exception = proven.tokenHash
        self.event = event
        now = proven.now
    }

    /// The change that the holder of a restricted session asks for; every session ends.
    init(by restricted: RestrictedCaller, to new: NewCredential) {
        accountID = restricted.caller.accountID
        userid = restricted.userid
        credentialRevision = restricted.credentialRevision
        self.new = new
        exception = nil
        event = .credentialChanged
        now = restricted.caller.now
    }

    /// What has come of it.
    struct Outcome: Sendable {
        let sessionsEnded: Int
        /// Nil when the account has no keyring.
        let keyringRevision: Int64?
    }

    /// Carries it out. After an error the transaction has to be rolled back.
    /// - Throws: ``CredentialProblem/keyringChanged``, ``RegistrationProblem/useridTaken``, ``WrongCurrentKey`` when the
    ///   credential is not the one that was to be replaced, or a `PostgresError`.
    func apply(_ transaction: Transaction) async throws -> Outcome {
        try await replaceLogin(transaction)
        let (moved, ended) = try await transaction.execute(
            MoveCredential(
                accountID: accountID, credentialRevision: credentialRevision, userid: newUserid, keyring: new.keyring,
                keyringRevision: new.keyringRevision),
            RemoveAllSessions(accountID: accountID, exception: exception, now: now))
        guard let keyringRevision = moved.first else { throw CredentialProblem.keyringChanged }
        _ = try await transaction.execute(
            RecordSecurityEvent(
                accountID: accountID, kind: event, now: now, count: ended.isEmpty ? nil : Int64(ended.count)))
        return Outcome(sessionsEnded: ended.count, keyringRevision: keyringRevision)
    }

    private func replaceLogin(_ transaction: Transaction) async throws {
        guard let newUserid else {
            let replaced = try await transaction.execute(
                ReplaceVerifier(
                    userid: userid, accountID: accountID, verifier: new.verifier, kdfIterations: new.iterations,
                    credentialRevision: credentialRevision))
            guard !replaced.isEmpty else { throw WrongCurrentKey() }
            return
        }
        let taken = try await transaction.execute(
            TakeUserid(
                userid: newUserid, accountID: accountID, verifier: new.verifier, kdfIterations: new.iterations,
                credentialRevision: credentialRevision))
        guard !taken.isEmpty else { throw RegistrationProblem.useridTaken }
        _ = try await transaction.execute(RemoveLogin(userid: userid, accountID: accountID))
    }
}
