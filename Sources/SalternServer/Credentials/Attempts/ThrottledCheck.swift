internal import HTTPCore
internal import Postgres

/// What a look at a secret has found.
enum CheckResult<Value: Sendable>: Sendable {
    /// The secret is right.
    case right(Value)
    /// The secret is wrong, or opens nothing: it is counted, and the error thrown.
    case wrong(FailureKind, any Error)
    /// Nobody can say yet: the error is thrown, and nothing counted.
    case undecided(any Error)
}

/// One attempt to show a secret. It owns all that slows guessing down: the pace of refusals, the turn at a counter, the
/// admission, the look, its count, and that a client which goes away changes nothing about them.
///
/// Which counter it is follows from the token that the client shows: the slot's, the one of all tokens of the generation
/// before, or the userid's. The token is checked before anything is looked up, and the statement always reads two
/// counters. When the userid then turns out to belong to no account, to another one, or to have another generation, the
/// attempt begins again, as if no token had come: unknown userids and those of others look alike.
struct ThrottledCheck: Sendable {
    let attempts: Attempts
    let userid: Userid
    /// What the token says that was shown.
    let device: KnownDevice?
    let client: ClientAddress

    /// Where an attempt is counted.
    private enum CounterKey: Sendable {
        case stranger
        case slot(KnownDevice)
        case earlier(KnownDevice)

        /// Where it has to be counted, given what there is of the userid.
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

    /// Whoever is sent away more often is told to wait: nodes are too busy with the counter.
    private static let roundLimit = 6

    /// Looks at the secret, unless the counter is blocked.
    ///
    /// - Parameter check: Compares the secret. It may send statements with ``SecretCheck/send(_:isRight:kind:of:)``, so that what
    ///   a right secret opens and the count of a wrong one are one transaction each. Runs in a task that is not cancelled.
    /// - Throws: ``TooManyAttempts``, what was found, `CancellationError` before the look, or a `PostgresError`: when a
    ///   failure could not have been counted, also when the secret is right.
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
            // Whoever has gone by now was not looked at.
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

    /// Reads, admits, looks and counts. Nobody else of this node is at the counter meanwhile.
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
                // From here on only one node at a time gets any further, and not before the delay has begun.
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

    /// The known device, as tokens name it now.
    private static func device(_ counterKey: CounterKey, _ login: FindLogin.Row?) -> KnownDevice? {
        switch counterKey {
        case .stranger: nil
        case .slot(let device), .earlier(let device): login.map { device.inGeneration($0.deviceGeneration) }
        }
    }
}
