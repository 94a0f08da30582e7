internal import HTTPCore
internal import Postgres

/// The result of the check of a secret.
enum CheckResult<Value: Sendable>: Sendable {
    /// The secret is right.
    case right(Value)
    /// The secret is wrong or grants nothing. The failure is counted, and the error thrown.
    case wrong(FailureKind, any Error)
    /// The check has no result. The error is thrown, and nothing is counted.
    case undecided(any Error)
}

/// One attempt to present a secret. It includes all steps that limit guessing: response timing, the queue of the
/// counter, admission, check and count. A client that disconnects changes none of them.
///
/// The client's device token selects the counter: the slot's, the one of all tokens of the previous generation, or the
/// userid's. The token is verified before any query, and the statement always reads two counters. If the userid then
/// has no account, another account or another generation, the attempt restarts as without a token. Unknown userids and
/// those of other accounts therefore behave alike.
struct ThrottledCheck: Sendable {
    let attempts: Attempts
    let userid: Userid
    /// The device of a verified token.
    let device: KnownDevice?
    let client: ClientAddress

    /// The counter that an attempt uses.
    private enum CounterKey: Sendable {
        case stranger
        case slot(KnownDevice)
        case earlier(KnownDevice)

        /// Returns the counter that the attempt must use, given the userid's row.
        func following(_ login: FindLogin.Row?, at now: Timestamp) -> CounterKey {
            switch self {
            case .stranger: return .stranger
            case .slot(let device), .earlier(let device):
                guard let login, login.accountID == device.accountID else { return .stranger }
                if login.deviceGeneration == device.generation { return .slot(device) }
                guard login.deviceGenerationBefore == device.generation, let movedAt = login.deviceGenerationMovedAt,
                    movedAt + KnownDevice.graceOfEarlierGeneration > now
                else { return .stranger }
                return .earlier(device)
            }
        }
    }

    private enum Round<Value: Sendable>: Sendable {
        case over(Value)
        case again(CounterKey)
    }

    /// The maximum number of restarts, after which the client receives 429: several nodes are busy with the counter.
    private static let roundLimit = 6

    /// Checks the secret unless the counter is blocked.
    ///
    /// - Parameter check: Compares the secret. It may send statements with ``SecretCheck/send(_:isRight:kind:of:)``, so
    ///   that the result of a right secret, or the count of a wrong one, is one transaction. It runs in a task that is
    ///   not cancelled.
    /// - Throws: ``TooManyAttempts``, the error of the finding, `CancellationError` before the check, or a
    ///   `PostgresError`. The latter also replaces a right secret's result if a failure could not have been counted.
    func run<Value: Sendable>(
        _ check: @escaping @Sendable (SecretCheck) async throws -> CheckResult<Value>
    ) async throws -> Value {
        try await ResponseTiming.refusal.failures {
            var counterKey = device.map(CounterKey.slot) ?? .stranger
            for _ in 0..<Self.roundLimit {
                switch try await round(counterKey, check) {
                case .over(let value): return value
                case .again(let next): counterKey = next
                }
            }
            throw TooManyAttempts(wait: .seconds(1))
        }
    }

    private func round<Value: Sendable>(
        _ counterKey: CounterKey, _ check: @escaping @Sendable (SecretCheck) async throws -> CheckResult<Value>
    ) async throws -> Round<Value> {
        let counter = AttemptCounter(subject: attempts.subjects.userid(userid), place: place(of: counterKey))
        return try await attempts.counterQueue.wait(for: counter, from: client.ip.network) {
            // A client that has disconnected by now is not checked.
            try Task.checkCancellation()
            return try await attempts.checks.run(on: attempts.database.loop) {
                try await visit(counterKey, counter, check)
            }
        }
    }

    private func place(of counterKey: CounterKey) -> AttemptPlace {
        switch counterKey {
        case .stranger: .stranger
        case .slot(let device): attempts.subjects.slot(of: device)
        case .earlier(let device): attempts.subjects.generation(of: device)
        }
    }

    /// Reads, admits, checks and counts. No other attempt of this node uses the counter meanwhile.
    private func visit<Value: Sendable>(
        _ counterKey: CounterKey, _ counter: AttemptCounter, _ check: (SecretCheck) async throws -> CheckResult<Value>
    ) async throws -> Round<Value> {
        let other: AttemptPlace = counter.place == .stranger ? .random() : .stranger
        let (logins, counters) = try await attempts.database.execute(
            FindLogin(userid: userid),
            FindFailedAttempts(subject: counter.subject, places: [counter.place, other]))
        let now = attempts.clock.now
        let actual = counterKey.following(logins.first, at: now)
        guard place(of: actual) == counter.place else { return .again(actual) }
        let failures = counters.first { $0.place == counter.place }
        var release: ReleaseAttempt?
        if let failures {
            if let wait = AttemptPolicy.wait(until: failures.blockedUntil, at: now) {
                throw TooManyAttempts(wait: wait)
            }
            if failures.isCritical(at: now) {
                // From here on one node at a time continues, and only after the delay has started.
                let reservation = ReserveAttempt(counter: counter, now: now)
                let reserved = try await attempts.database.execute(reservation, key: .counters(counter.subject))
                guard let end = reserved.first else { return .again(actual) }
                release = ReleaseAttempt(counter: counter, failures: failures, blockedUntil: end)
            }
        }
        let visit = SecretCheck(
            attempts: attempts, counter: counter, login: logins.first, device: Self.device(actual, logins.first),
            release: release, now: now)
        let result = try await check(visit)
        let value = try await visit.settle(result)
        if failures != nil, let login = logins.first { await attempts.forget(counter, of: login.accountID) }
        return .over(value)
    }

    /// Returns the known device in the present generation.
    private static func device(_ counterKey: CounterKey, _ login: FindLogin.Row?) -> KnownDevice? {
        switch counterKey {
        case .stranger: nil
        case .slot(let device), .earlier(let device): login.map { device.inGeneration($0.deviceGeneration) }
        }
    }
}

/// Delays results to fixed intervals after the start of a request. Response times then do not reveal if a row exists,
/// or if it was in memory or on disk.
///
/// Equal work in each case is not sufficient. An index hit costs measurable microseconds, and a read from disk many
/// more.
struct ResponseTiming: Sendable {
    /// The interval.
    let step: Duration

    /// For replies that every log-in needs.
    static let lookup = ResponseTiming(step: .milliseconds(5))
    /// For rejections.
    static let refusal = ResponseTiming(step: .milliseconds(20))

    /// Runs `body` and returns or throws at the next interval.
    func always<Result>(_ body: () async throws -> Result) async throws -> Result {
        let start = ContinuousClock.now
        let result = try await failures(since: start, body)
        await wait(since: start)
        return result
    }

    /// Runs `body`, and throws its errors at the next interval.
    func failures<Result>(_ body: () async throws -> Result) async throws -> Result {
        try await failures(since: .now, body)
    }

    private func failures<Result>(
        since start: ContinuousClock.Instant, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            await wait(since: start)
            throw error
        }
    }

    private func wait(since start: ContinuousClock.Instant) async {
        let steps = ((ContinuousClock.now - start) / step).rounded(.down) + 1
        // The wait is cut short only if the client has disconnected.
        try? await Task.sleep(until: start + step * steps, tolerance: .zero, clock: .continuous)
    }
}
