internal import Cryptography
internal import Postgres

/// One check of one secret, from its admission until it is counted or accepted.
///
/// Each check of a wrong secret sends exactly one ``RecordFailedAttempt``. A right one sends a statement with the same
/// requirements instead, so blocked counts reveal nothing about the secret.
final class SecretCheck {
    /// The row of the userid.
    let login: FindLogin.Row?
    /// The device of the verified token, in the form of its next token. Nil without one.
    let device: KnownDevice?
    /// The time of the attempt.
    let now: Timestamp
    private let attempts: Attempts
    private let counter: AttemptCounter
    /// Reverts the delay that was started, if any.
    private let release: ReleaseAttempt?
    private var isCounted = false
    private var isHeld = false

    init(
        attempts: Attempts, counter: AttemptCounter, login: FindLogin.Row?, device: KnownDevice?,
        release: ReleaseAttempt?, now: Timestamp
    ) {
        self.attempts = attempts
        self.counter = counter
        self.login = login
        self.device = device
        self.release = release
        self.now = now
    }

    private var database: PostgresClient { attempts.database }

    private func recording(_ kind: FailureKind) -> RecordFailedAttempt {
        precondition(!isCounted, "a check records at most one attempt")
        isCounted = true
        return RecordFailedAttempt(counter: counter, kind: kind, now: now, isReserved: release != nil)
    }

    private func holding() -> HoldFailedAttempts {
        isHeld = true
        return HoldFailedAttempts(counter: counter)
    }

    /// Sends the statement of a right secret, and for a wrong one also its count, in one transaction.
    ///
    /// - Parameter account: The account that a right secret opens.
    func send<S: Statement>(
        _ statement: S, isRight: Bool, kind: FailureKind, of account: AccountID
    ) async throws(PostgresError) -> [S.Row] {
        if isRight { return try await database.execute(statement, holding(), key: .account(account)).0 }
        return try await database.execute(statement, recording(kind), key: .counters(counter.subject)).0
    }

    /// Opens the session of a recovery like ``send(_:isRight:kind:of:)``. With the right key it uses a dedicated
    /// connection and the account's lock. A wrong key locks nothing and writes only its count.
    func open(_ opening: OpenRecoverySession) async throws -> [OpenRecoverySession.Row] {
        let account = opening.accountID
        let lock = LockRecoveringAccount(accountID: account, isPermitted: opening.isPermitted)
        let store = StoreRecoverySession(opening: opening)
        let event = RecordSecurityEvent(
            accountID: account, kind: .recoveryUsed, now: opening.now, sessionID: opening.sessionID,
            deviceName: opening.deviceName, writer: opening.writer)
        let drop = DropOldEvents(after: event)
        if opening.isPermitted {
            return try await database.withTransaction(key: .account(account)) { transaction in
                try await transaction.execute(lock, opening, store, event, drop, holding()).1
            }
        }
        return try await database.execute(
            lock, opening, store, event, drop, recording(.recoveryKey), key: .counters(counter.subject)
        ).1
    }

    /// Opens a session like ``send(_:isRight:kind:of:)``.
    ///
    /// - Parameter reporting: True queues an outgoing event of the session.
    /// - Returns: The account, and true if the session was stored.
    func open(
        _ opening: OpenSession, kind: FailureKind, reporting: Bool
    ) async throws(PostgresError) -> (OpenSession.Row, Bool)? {
        let (store, account) = (StoreSession(opening: opening), opening.accountID)
        let (rows, stored, _) =
            if opening.isPermitted, reporting {
                try await openReporting(opening, store)
            } else if opening.isPermitted {
                try await database.execute(opening, store, holding(), key: .account(account))
            } else {
                try await database.execute(opening, store, recording(kind), key: .counters(counter.subject))
            }
        return rows.first.map { ($0, stored.first?.count == 1) }
    }

    private func openReporting(
        _ opening: OpenSession, _ store: StoreSession
    ) async throws(PostgresError) -> ([OpenSession.Row], [ChangedRows], [Void]) {
        let event = QueueOpenedSession(opening)
        let (rows, stored, _, _, _) = try await database.execute(
            opening, store, event, StoreOpenedSession(queue: event), holding(), key: .account(opening.accountID))
        return (rows, stored, [])
    }

    /// Runs `body` in a transaction that ends with the count of its finding, so that both commit together.
    func transaction<Value: Sendable>(
        of account: AccountID, _ body: (Transaction) async throws -> CheckResult<Value>
    ) async throws -> CheckResult<Value> {
        try await database.withTransaction(key: .account(account)) { transaction in
            let result = try await body(transaction)
            switch result {
            case .right: _ = try await transaction.execute(holding())
            case .wrong(let kind, _): _ = try await transaction.execute(recording(kind))
            case .undecided: break
            }
            return result
        }
    }

    /// Counts the finding, unless that was done, and returns its value. All wrong secrets take the same statements.
    func settle<Value>(_ result: CheckResult<Value>) async throws -> Value {
        switch result {
        case .right(let value):
            if !isHeld { _ = try await database.execute(holding(), key: .counters(counter.subject)) }
            return value
        case .wrong(let kind, let error):
            if isCounted {
                _ = try await database.execute(holding(), key: .counters(counter.subject))
            } else {
                _ = try await database.execute(recording(kind), key: .counters(counter.subject))
            }
            throw error
        case .undecided(let error):
            if let release { _ = try await database.execute(release, key: .counters(counter.subject)) }
            throw error
        }
    }
}
