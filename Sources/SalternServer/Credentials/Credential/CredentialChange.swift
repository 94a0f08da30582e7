internal import Postgres

/// The steps of every change of a credential, for a transaction that holds the account's row `FOR UPDATE`: the number of
/// the credential in both of its rows, userid and keyring when there are new ones, the end of the sessions, the event, what
/// was counted for devices of the generation that ends, and last the userid's row with verifier, iterations and generation.
struct CredentialChange: Sendable {
    let accountID: AccountID
    /// The userid that the account has now.
    let userid: Userid
    /// The credential that is replaced.
    let credentialRevision: Int64
    /// Its key; nil when nobody has shown it.
    let previousKey: PreviousKeyMark?
    let new: NewCredential
    /// The userid that it shall have; nil for the present one.
    var newUserid: Userid?
    /// The session that asks.
    let tokenHash: TokenHash
    /// When it ends, if it is restricted: then it ends with the others, and its request may come again until then.
    let restrictedUntil: Timestamp?
    let event: SecurityEvent.Kind
    let subject: AttemptSubject
    let now: Timestamp

    /// The change that a proven caller asks for; their session stays.
    init(
        by proven: ProvenCaller, to new: NewCredential, userid: Userid? = nil,
        event: SecurityEvent.Kind = .credentialChanged, _ attempts: Attempts
    ) {
        accountID = proven.accountID
        self.userid = proven.userid
        credentialRevision = proven.credentialRevision
        previousKey = attempts.previousKeys.mark(proven.verifier, of: proven.accountID)
        self.new = new
        newUserid = userid
        tokenHash = proven.tokenHash
        restrictedUntil = nil
        self.event = event
        subject = attempts.subjects.userid(proven.userid)
        now = proven.now
    }

    /// The change that the holder of a restricted session asks for; every session ends.
    init(by restricted: RestrictedCaller, to new: NewCredential, _ attempts: Attempts) {
        accountID = restricted.caller.accountID
        userid = restricted.userid
        credentialRevision = restricted.credentialRevision
        previousKey = nil
        self.new = new
        tokenHash = restricted.caller.tokenHash
        restrictedUntil = restricted.sessionExpiresAt
        event = .credentialChanged
        subject = attempts.subjects.userid(restricted.userid)
        now = restricted.caller.now
    }

    /// What has come of it.
    struct Outcome: Sendable {
        let sessionsEnded: Int
        /// Nil when the account has no keyring.
        let keyringRevision: Int64?
        /// Whether a recovery code opens the account.
        let hasRecovery: Bool
        /// The caller's device, in the present generation.
        let device: KnownDevice
    }

    /// Carries it out. After an error the transaction has to be rolled back.
    /// - Throws: ``CredentialProblem/keyringRequired``, ``RecoveryProblem/keyringRequired``, ``CredentialProblem/keyringChanged``,
    ///   ``RegistrationProblem/useridTaken``, ``WrongCurrentKey`` when the credential is not the one that was to be
    ///   replaced, or a `PostgresError`.
    func apply(_ transaction: Transaction) async throws -> Outcome {
        let hadRecovery = try await new.requireKeyHolders(
            of: accountID, changesKeys: event == .rotationCommitted, transaction)
        let removal = RemoveAllSessions(
            accountID: accountID, exception: restrictedUntil == nil ? tokenHash : nil, now: now)
        let (moved, _, ended) = try await transaction.execute(
            MoveCredential(
                accountID: accountID, credentialRevision: credentialRevision, userid: newUserid, keyring: new.keyring,
                keyringRevision: new.keyringRevision),
            RecordSessionEnds(removal: removal), removal)
        guard let keyringRevision = moved.first else { throw CredentialProblem.keyringChanged }
        // They would go on opening with the password of before, or hold data keys that were replaced.
        _ = try await transaction.execute(RemoveKeptKeyrings(accountID: accountID))
        if let restrictedUntil {
            _ = try await transaction.execute(
                CompleteRecovery(
                    accountID: accountID, tokenHash: tokenHash, expiresAt: restrictedUntil,
                    credentialRevision: credentialRevision + 1))
        }
        let hasRecovery = try await new.recovery.apply(
            transaction, to: accountID, hasRecovery: hadRecovery, now: now)
        try await transaction.note(
            RecordSecurityEvent(
                accountID: accountID, kind: event, now: now, count: ended.isEmpty ? nil : Int64(ended.count)))
        try await transaction.endGeneration(subject, of: accountID, now: now)
        let generation = try await replaceLogin(transaction)
        return Outcome(
            sessionsEnded: ended.count, keyringRevision: keyringRevision, hasRecovery: hasRecovery,
            device: .ofSession(accountID, tokenHash, generation: generation))
    }

    /// - Returns: The generation of tokens of devices that begins.
    private func replaceLogin(_ transaction: Transaction) async throws -> Int64 {
        guard let newUserid else {
            let replaced = try await transaction.execute(
                ReplaceVerifier(
                    userid: userid, accountID: accountID, verifier: new.verifier, kdfIterations: new.iterations,
                    credentialRevision: credentialRevision, previousKey: previousKey, now: now))
            guard let generation = replaced.first else { throw WrongCurrentKey() }
            return generation
        }
        let next = NextDeviceGeneration(userid: userid, accountID: accountID)
        guard let generation = try await transaction.execute(next).first else { throw WrongCurrentKey() }
        let taken = try await transaction.execute(
            TakeUserid(
                userid: newUserid, accountID: accountID, verifier: new.verifier, kdfIterations: new.iterations,
                credentialRevision: credentialRevision, generation: generation,
                previousKey: previousKey, now: now))
        guard !taken.isEmpty else { throw RegistrationProblem.useridTaken }
        _ = try await transaction.execute(RemoveLogin(userid: userid, accountID: accountID))
        return generation.next
    }
}

extension Transaction {
    /// Notes what was counted for devices of a generation that has ended: their counters are of no more use, and the
    /// account never has more than eighteen. The account's row is locked.
    func endGeneration(_ subject: AttemptSubject, of accountID: AccountID, now: Timestamp) async throws(PostgresError) {
        let removed = try await execute(RemoveFailuresOfDevices(subject: subject))
        try await note(removed.flatMap(\.tallies), of: accountID, now: now)
    }
}
