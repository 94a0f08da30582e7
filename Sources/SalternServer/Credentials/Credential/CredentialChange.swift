internal import Postgres

/// The steps of every change of a credential, in a transaction that holds the account's row `FOR UPDATE`:
///
/// 1. move the credential's number, and replace userid and keyring if the request has new ones
/// 2. end the sessions and record the event
/// 3. record the failures of devices of the ending generation
/// 4. replace the userid's row with verifier, iterations and generation
struct CredentialChange: Sendable {
    let accountID: AccountID
    /// The present userid of the account.
    let userid: Userid
    /// The number of the credential to replace.
    let credentialRevision: Int64
    /// The mark of its key. Nil if the caller has not presented it.
    let previousKey: PreviousKeyMark?
    let new: NewCredential
    /// The new userid. Nil to keep the present one.
    var newUserid: Userid?
    /// The caller's session.
    let tokenHash: TokenHash
    /// The end of the caller's session if it is restricted. It then ends with the others, and its request may be
    /// repeated until that time.
    let restrictedUntil: Timestamp?
    let event: SecurityEvent.Kind
    let subject: AttemptSubject
    let now: Timestamp

    /// Creates the change of a proven caller, whose session stays.
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

    /// Creates the change of a caller with a restricted session. All sessions end.
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

    /// The result of the change.
    struct Outcome: Sendable {
        let sessionsEnded: Int
        /// Nil if the account has no keyring.
        let keyringRevision: Int64?
        /// True if the account has a recovery code.
        let hasRecovery: Bool
        /// The caller's device in the present generation.
        let device: KnownDevice
    }

    /// Applies the change. After an error the transaction must be rolled back.
    ///
    /// - Throws: ``CredentialProblem/keyringRequired``, ``RecoveryProblem/keyringRequired``,
    ///   ``PasskeyProblem/boxesRequired(_:)``,
    ///   ``CredentialProblem/keyringChanged``, ``RegistrationProblem/useridTaken``, ``WrongCurrentKey`` if the
    ///   credential is not the one to replace, or a `PostgresError`.
    func apply(_ transaction: Transaction) async throws -> Outcome {
        let hadRecovery = try await new.requireKeyHolders(
            of: accountID, changesKeys: event == .rotationCommitted, transaction)
        let removal = RemoveAllSessions(
            accountID: accountID, exception: restrictedUntil == nil ? tokenHash : nil, now: now)
        let ends = QueueEnds(removal: removal)
        let (moved, _, _, _, ended) = try await transaction.execute(
            MoveCredential(
                accountID: accountID, credentialRevision: credentialRevision, userid: newUserid, keyring: new.keyring,
                keyringRevision: new.keyringRevision),
            RecordSessionEnds(removal: removal), ends, StoreEnds(queue: ends), removal)
        guard let keyringRevision = moved.first else { throw CredentialProblem.keyringChanged }
        // Kept keyrings open with the previous password, or hold replaced data keys.
        _ = try await transaction.execute(RemoveKeptKeyrings(accountID: accountID))
        if let restrictedUntil {
            _ = try await transaction.execute(
                CompleteRecovery(
                    accountID: accountID, tokenHash: tokenHash, expiresAt: restrictedUntil,
                    credentialRevision: credentialRevision + 1))
        }
        try await new.passkeyBoxes.apply(transaction, to: accountID, now: now)
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

    /// - Returns: The new generation of device tokens.
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
    /// Records the failures counted for devices of an ended generation and removes their counters. A userid therefore
    /// never has more than eighteen. The account's row must be locked.
    func endGeneration(_ subject: AttemptSubject, of accountID: AccountID, now: Timestamp) async throws(PostgresError) {
        let removed = try await execute(RemoveFailuresOfDevices(subject: subject))
        try await note(removed.flatMap(\.tallies), of: accountID, now: now)
    }
}
