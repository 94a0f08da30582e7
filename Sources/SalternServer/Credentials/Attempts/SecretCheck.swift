internal import Cryptography
internal import Postgres

/// One look at one secret, from the moment at which it was admitted until it has been counted or found right.
///
/// Each look sends exactly one ``RecordFailedAttempt`` when the secret is wrong. A right one sends a statement that needs
/// the same in its place. So nobody learns what the secret was by keeping counts from being written.
final class SecretCheck {
    /// What there is of the userid.
    let login: FindLogin.Row?
    /// The device whose token was shown, as its next token will name it; nil for a stranger.
    let device: KnownDevice?
    /// The time of the attempt.
    let now: Timestamp
    private let attempts: Attempts
    private let counter: AttemptCounter
    /// What takes back the delay that has begun already, if one has.
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
        precondition(!isCounted, "one look, one count")
        isCounted = true
        return RecordFailedAttempt(counter: counter, kind: kind, now: now, isReserved: release != nil)
    }

    private func holding() -> HoldFailedAttempts {
        isHeld = true
        return HoldFailedAttempts(counter: counter)
    }

    /// Sends what a right secret opens, and with a wrong one its count: both or neither.
    /// - Parameter account: The account that a right secret opens.
    func send<S: Statement>(
        _ statement: S, isRight: Bool, kind: FailureKind, of account: AccountID
    ) async throws(PostgresError) -> [S.Row] {
        if isRight { return try await database.execute(statement, holding(), key: .account(account)).0 }
        return try await database.execute(statement, recording(kind), key: .counters(counter.subject)).0
    }

    /// Opens the session of a recovery as ``send(_:isRight:kind:of:)`` sends a statement; with the right key on a connection
    /// of its own, because it is used under the account's lock. Whatever is wrong locks and writes nothing but its count.
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

    /// Opens a session as ``send(_:isRight:kind:of:)`` sends a statement.
    /// - Returns: The account, and whether the session was stored.
    func open(_ opening: OpenSession, kind: FailureKind) async throws(PostgresError) -> (OpenSession.Row, Bool)? {
        let (store, account) = (StoreSession(opening: opening), opening.accountID)
        let (rows, stored, _) =
            if opening.isPermitted {
                try await database.execute(opening, store, holding(), key: .account(account))
            } else {
                try await database.execute(opening, store, recording(kind), key: .counters(counter.subject))
            }
        return rows.first.map { ($0, stored.first?.count == 1) }
    }

    /// Runs `body` in a transaction that ends with the count of what it has found, so that there is neither without the
    /// other.
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

    /// Counts what was found, unless it has been, and takes the value out of it. Whatever was wrong takes the same
    /// statements.
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
