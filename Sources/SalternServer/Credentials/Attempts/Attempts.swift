internal import EventLoop
internal import HTTPCore
internal import Postgres
internal import Synchronization

/// Limits guessing: counts consecutive failures in the database, and rejects further secrets unchecked until the delay
/// is over. All checks of secrets run in a ``ThrottledCheck``.
struct Attempts: Sendable {
    let subjects: AttemptSubjects
    let database: PostgresClient
    let counterQueue: CounterQueue
    let checks: ActiveSecretChecks
    let devices: DeviceTokens
    let previousKeys: PreviousKeys
    let clock: any WallClock

    /// Creates an attempt without a session.
    func attempt(_ userid: Userid, _ claim: DeviceClaim, from client: ClientAddress) -> ThrottledCheck {
        ThrottledCheck(
            attempts: self, userid: userid, device: claim.token.flatMap { devices.device($0) }, client: client)
    }

    /// Returns the failures of a userid since its last success, by kind.
    func failures(of userid: Userid) async throws(PostgresError) -> [FailureTally] {
        let counters = try await database.execute(FindAllFailedAttempts(subject: subjects.userid(userid)))
        return FailureTally.sum(counters.flatMap(\.tallies))
    }

    /// Removes the failures before a success and records them in the account's security log.
    ///
    /// An error is ignored, because the attempt has succeeded: the next success removes the remaining count.
    func forget(_ counter: AttemptCounter, of accountID: AccountID) async {
        try? await database.withTransaction(key: .account(accountID)) { transaction in
            // The account first, according to the lock order. An attempt that waits for it does not hold the counter.
            let (_, removed) = try await transaction.execute(
                KeepAccount(accountID: accountID), RemoveFailedAttempts(counter: counter))
            try await transaction.note(removed.flatMap(\.tallies), of: accountID, now: clock.now)
        }
    }
}

extension Transaction {
    /// Writes an event for each kind of failure. The account's row must be locked.
    func note(_ tallies: [FailureTally], of accountID: AccountID, now: Timestamp) async throws(PostgresError) {
        for tally in FailureTally.sum(tallies) {
            try await note(
                RecordSecurityEvent(
                    accountID: accountID, kind: tally.kind.event, now: now, count: tally.count, since: tally.since))
        }
    }
}

/// The error of an attempt that was not checked, because too many failed in a row.
struct TooManyAttempts: ProblemConvertible {
    let wait: Duration

    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_attempts",
            detail: "Too many attempts failed. This attempt was not checked. Send it again after Retry-After.",
            responseFields: ["Retry-After": RetryAfter.seconds(wait)])
    }
}

/// The member `device: {name?, token?}` of a log-in.
struct DeviceClaim: Sendable {
    var name: DeviceName?
    /// The device token, not yet verified. Nil if it is malformed.
    var token: DeviceToken?

    init(from members: inout JSONMembers) throws {
        let claim = try members.optionalObject("device") { device in
            (
                name: try device.optional("name", DeviceName.init(json:)),
                token: try device.optional("token") { json throws(Problem) in
                    try json.text().withUTF8(DeviceToken.init)
                }
            )
        }
        name = claim?.name
        token = claim?.token ?? nil
    }
}

/// Runs work that must complete even if its client disconnects: checks of secrets, with their counts. There is at most
/// one for each counter, and each ends by itself. A stop of the server waits for them.
public final class ActiveSecretChecks: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Runs `body` in a task of its own, and waits for it even if the caller's task is cancelled.
    func run<Value: Sendable>(
        on loop: EventLoop, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        state.withLock { $0.count += 1 }
        let task = Task(executorPreference: loop) {
            defer { self.end() }
            return try await body()
        }
        return try await task.value
    }

    /// Returns when no check is running.
    public func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.count > 0 { state.waiters.append(continuation) }
                return state.count == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func end() {
        let waiters = state.withLock { state in
            state.count -= 1
            if state.count > 0 { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
