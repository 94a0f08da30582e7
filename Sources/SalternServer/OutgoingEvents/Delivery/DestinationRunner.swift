internal import Postgres

/// Delivers to one destination until its task is cancelled, or the destination is removed or disabled. Each destination
/// has its own runner, so a slow receiver does not delay the others.
struct DestinationRunner: Sendable {
    let id: DestinationID
    let outbox: Outbox
    let database: PostgresClient
    let client: any WebhookClient
    let clock: any WallClock
    let masterKey: @Sendable () -> MasterKey
    let pairwiseKey: PairwiseKey
    let counters: DeliveryCounters
    let log: Log
    /// The pause between two reads of the database while no queue is due.
    let pollInterval: Duration
    /// The first pause of the circuit breaker.
    let breakerPause: Duration

    /// The most queues with a delivery at the same time. Each is of another account, so an account for which the
    /// receiver is slow leaves the others free.
    static let concurrency = 8

    private enum Event: Sendable {
        case tick
        /// Nil if the database has failed.
        case ended(QueueDelivery.Outcome?, AccountID)
    }

    func run() async {
        var breaker = CircuitBreaker(pause: breakerPause)
        var due: [DueQueue] = []
        var active: Set<AccountID> = []
        var (isTicking, isPaused) = (false, false)
        var nextTest = ContinuousClock.now
        await withTaskGroup(of: Event.self) { group in
            while !Task.isCancelled, let delivery = delivery() {
                let allowed = min(breaker.allowance(.now, limit: Self.concurrency), Self.concurrency - active.count)
                var starting = due.take(allowed, except: active)
                if allowed > 0, starting.isEmpty, !isPaused {
                    let isTest = breaker.isOpen && nextTest <= .now
                    due = await findDue(testing: isTest, except: active)
                    if isTest, !due.isEmpty { nextTest = .now + breakerPause }
                    starting = due.take(allowed, except: active)
                }
                for queue in starting {
                    breaker.begin()
                    active.insert(queue.accountID)
                    group.addTask { .ended(await deliver(queue, delivery), queue.accountID) }
                }
                // The other queues are out of date when an open breaker closes.
                if breaker.isOpen { due = [] }
                counters.note(breaker, of: delivery.destination.name)
                if !isTicking {
                    isTicking = true
                    // Due queues are read again after each tick, even during a delivery to a slow receiver.
                    group.addTask {
                        try? await Task.sleep(for: pollInterval)
                        return .tick
                    }
                }
                // The next read waits for a tick if no queue was due or the database has failed.
                if !due.contains(where: { !active.contains($0.accountID) }) { isPaused = true }
                switch await group.next() {
                case .tick?: (isTicking, isPaused) = (false, false)
                case .ended(let outcome, let account)?:
                    active.remove(account)
                    await take(outcome, &breaker, delivery.destination)
                    switch outcome {
                    case .delivered, .settled: isPaused = false
                    case .failed, .idle, .gone, nil: break
                    }
                case nil: return
                }
            }
            group.cancelAll()
        }
    }

    private func take(
        _ outcome: QueueDelivery.Outcome?, _ breaker: inout CircuitBreaker, _ destination: Destination
    ) async {
        switch outcome {
        case .delivered: breaker.succeed()
        case .failed: breaker.fail(.now)
        case .idle, .settled, nil: breaker.abandon(.now)
        case .gone:
            outbox.disable(id, now: clock.now)
            log.write(.warning, "destination_disabled", ["destination": destination.name])
        }
    }

    /// - Parameters:
    ///   - testing: True prefers an account without failures.
    ///   - active: Accounts with a delivery under way, which are not tested.
    private func findDue(testing: Bool, except active: Set<AccountID>) async -> [DueQueue] {
        // Failures of the database are reported elsewhere.
        let due = (try? await database.execute(FindDueQueues(destinationID: id, now: clock.now))) ?? []
        if due.isEmpty || !testing { return due }
        let test = FindTestQueue(destinationID: id, now: clock.now, except: Array(active))
        // A separate connection delays no request when many queues wait.
        let found = try? await database.withConnection { try await $0.execute(test) }
        return found.flatMap { $0.first.map { [$0] } } ?? due
    }

    private func deliver(_ queue: DueQueue, _ delivery: QueueDelivery) async -> QueueDelivery.Outcome? {
        if queue.lane == EventLane.dropped {
            let key = EventQueueKey(accountID: queue.accountID, destinationID: id, lane: queue.lane)
            do { try await outbox.takeDropped(key, database) } catch { return nil }
            return .settled
        }
        return try? await delivery.run(queue) { counters.count($0, of: delivery.destination.name) }
    }

    /// Returns a delivery with the destination's current state, or nil if nothing can be delivered.
    private func delivery() -> QueueDelivery? {
        guard let destination = outbox.destinations.first(where: { $0.id == id }), !destination.isDisabled,
            let url = destination.url
        else { return nil }
        let secrets = destination.secrets(at: clock.now, masterKey())
        guard !secrets.isEmpty else { return nil }
        return QueueDelivery(
            destination: destination, url: url, secrets: secrets,
            writer: EventWriter(audience: destination.audience, key: pairwiseKey), database: database, client: client,
            clock: clock)
    }
}

/// Limits attempts to a failing destination. After several failures in a row, it permits one test attempt at a time, at
/// growing intervals. A receiver that is down then costs little, and its queues keep their own delays.
///
/// It is a pure value: callers pass the time.
struct CircuitBreaker: Sendable, Equatable {
    /// The failures in a row that open it.
    static let threshold = 5
    static let firstPause = Duration.seconds(10)
    static let longestPause = Duration.seconds(300)

    /// The interval after the failure that opens it. It doubles up to ``longestPause``.
    let pause: Duration

    private enum State: Sendable, Equatable {
        case closed
        /// No attempt begins before this time.
        case open(until: ContinuousClock.Instant)
        /// One attempt is under way.
        case testing
    }

    private var state = State.closed
    private var failures = 0

    init(pause: Duration = firstPause) {
        self.pause = pause
    }

    /// True if the last attempts failed.
    var isOpen: Bool { state != .closed }

    /// Returns the number of attempts that may begin now, at most `limit`.
    func allowance(_ now: ContinuousClock.Instant, limit: Int) -> Int {
        switch state {
        case .closed: limit
        case .open(let until): until <= now ? min(limit, 1) : 0
        case .testing: 0
        }
    }

    /// Records the beginning of an attempt.
    mutating func begin() {
        if case .open = state { state = .testing }
    }

    /// Records that a permitted attempt was not made.
    mutating func abandon(_ now: ContinuousClock.Instant) {
        if case .testing = state { state = .open(until: now) }
    }

    mutating func succeed() { self = CircuitBreaker(pause: pause) }

    mutating func fail(_ now: ContinuousClock.Instant) {
        failures += 1
        guard failures >= Self.threshold else { return }
        var pause = pause
        for _ in Self.threshold..<min(failures, Self.threshold + 8) { pause *= 2 }
        // An attempt that began before the breaker opened may end later. It does not extend the interval.
        if case .open(let until) = state, until > now {
            failures -= 1
            return
        }
        state = .open(until: now + min(pause, Self.longestPause))
    }
}
