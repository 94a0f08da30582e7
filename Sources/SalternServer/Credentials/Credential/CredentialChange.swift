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

/// Replaces a userid's verifier and ends the present generation of device tokens. Returns the new generation, and no
/// row if the credential is not the expected one.
///
/// Generations are numbered like ``AccountCounter``. After a restore, generations of the lost period are not reused, so
/// their tokens stay invalid.
struct ReplaceVerifier: Statement {
    typealias Row = Int64

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the credential to replace.
    let credentialRevision: Int64
    let previousKey: PreviousKeyMark?
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.logins l
        SET verifier = \(\.verifier), kdf_iterations = \(\.kdfIterations),
            credential_revision = l.credential_revision + 1,
            \(DeviceGenerationMove.assignments(at: "\(\.now)")), previous_key = \(\.previousKey)
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
            AND l.credential_revision = \(\.credentialRevision)
        RETURNING l.device_generation
        """
}

/// Ends the present generation of device tokens. Returns the new one, and no row if the userid is not the account's.
struct MoveDeviceGeneration: Statement {
    typealias Row = Int64

    let userid: Userid
    let accountID: AccountID
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.logins l
        SET \(DeviceGenerationMove.assignments(at: "\(\.now)"))
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
        RETURNING l.device_generation
        """
}

/// SQL for the end of a generation of device tokens, in the row `l` of its userid.
private enum DeviceGenerationMove {
    static let next = AccountCounter.next("l.device_generation")

    /// Stores the previous generation, because it is not always the number below.
    static func assignments<S>(at now: SQL<S>) -> SQL<S> {
        """
        device_generation = \(next), device_generation_before = l.device_generation,
            device_generation_moved_at = \(now)
        """
    }
}

/// Reads the next generation of device tokens and the present one. The userid's row stays unchanged.
struct NextDeviceGeneration: Statement {
    struct Row: Sendable {
        let next: Int64
        let present: Int64
    }

    let userid: Userid
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(DeviceGenerationMove.next), l.device_generation FROM saltern.logins l
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Takes a new userid for an account. Returns no row if it is taken.
///
/// It waits for transactions that are taking or freeing the userid. ``RemoveLogin`` frees the old one afterwards. With
/// this order, two accounts that exchange userids are both rejected and never wait for each other.
struct TakeUserid: Statement {
    typealias Row = Bool

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the credential to replace.
    let credentialRevision: Int64
    /// The new generation of device tokens and the previous one.
    let generation: NextDeviceGeneration.Row
    let previousKey: PreviousKeyMark?
    let now: Timestamp

    private var nextRevision: Int64 { credentialRevision + 1 }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.logins
            (userid, account_id, verifier, kdf_iterations, credential_revision, device_generation,
            device_generation_before, device_generation_moved_at, previous_key)
        VALUES (\(\.userid.string), \(\.accountID), \(\.verifier), \(\.kdfIterations), \(\.nextRevision),
            \(\.generation.next), \(\.generation.present), \(\.now), \(\.previousKey))
        ON CONFLICT (userid) DO NOTHING
        RETURNING true
        """
}

struct RemoveLogin: Statement {
    let userid: Userid
    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.logins WHERE userid = \(\.userid.string) AND account_id = \(\.accountID)"
}

/// Changes the account's row: the credential's number, and userid and keyring if they are new. Returns no row if
/// credential or keyring are not the expected ones.
struct MoveCredential: Statement {
    /// The keyring's revision. Nil without a keyring.
    typealias Row = Int64?

    let accountID: AccountID
    /// The number of the credential to replace.
    let credentialRevision: Int64
    let userid: Userid?
    let keyring: Keyring?
    /// The revision of the keyring to replace. Nil for any.
    let keyringRevision: Int64?

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET credential_revision = a.credential_revision + 1, userid = coalesce(\(\.userid?.string), a.userid),
            keyring = coalesce(\(\.keyring?.bytes), a.keyring),
            keyring_revision = CASE WHEN \(\.keyring?.bytes) IS NULL OR a.keyring = \(\.keyring?.bytes)
                THEN a.keyring_revision
                ELSE \(AccountCounter.next("a.keyring_revision")) END
        WHERE a.account_id = \(\.accountID) AND a.credential_revision = \(\.credentialRevision)
            AND (\(\.keyringRevision)::bigint IS NULL OR a.keyring_revision = \(\.keyringRevision))
        RETURNING CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        """
}

/// Records the restricted session that set the present credential, until that session would have expired. Its request
/// may be repeated after a lost reply.
struct CompleteRecovery: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let expiresAt: Timestamp
    /// The number of the credential that was set.
    let credentialRevision: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r
        SET completed_token_hash = \(\.tokenHash), completed_until = \(\.expiresAt),
            completed_revision = \(\.credentialRevision) WHERE r.account_id = \(\.accountID)
        """
}

/// The statements of credentials.
extension StatementList {
    static var credentials: [any Statement.Type] {
        [
            AreDecoysDue.self, SampleIterations.self, ReplaceDecoys.self, FindKDFParameters.self, FindLogin.self,
            Owned<FindUserid>.self, FindCredentialRevision.self, ReplaceVerifier.self, NextDeviceGeneration.self,
            TakeUserid.self, RemoveLogin.self, MoveCredential.self, FindAnySession.self, Owned<FindKeyHolders>.self,
            MoveDeviceGeneration.self,
        ]
    }
}
