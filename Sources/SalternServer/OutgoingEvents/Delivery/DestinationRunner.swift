internal import Postgres

/// Delivers to one destination until it is cancelled, or the destination is removed or disabled. Each destination has a runner of
/// its own, so that one which hangs delays no other.
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
    /// The pause between two questions to the database while nothing is due.
    let pollInterval: Duration

    /// The queues that a runner delivers from at a time.
    static let concurrency = 8
    /// The due queues that it reads at a time.
    private static let readLimit = 64

    private enum Event: Sendable {
        case tick
        /// Nil when the database has failed.
        case ended(QueueDelivery.Outcome?)
    }

    func run() async {
        var breaker = CircuitBreaker()
        var due: [DueQueue] = []
        var (active, isTicking, isPaused) = (0, false, false)
        await withTaskGroup(of: Event.self) { group in
            while !Task.isCancelled, let delivery = delivery() {
                let allowed = min(breaker.allowance(.now, limit: Self.concurrency), Self.concurrency - active)
                if allowed > 0, due.isEmpty, !isPaused { due = await findDue() }
                for queue in due.prefix(max(allowed, 0)) {
                    breaker.begin()
                    active += 1
                    group.addTask { .ended(await deliver(queue, delivery)) }
                }
                due.removeFirst(min(due.count, max(allowed, 0)))
                // By the time an open breaker closes, the rest is out of date.
                if breaker.isOpen { due = [] }
                counters.note(breaker, of: delivery.destination.name)
                if !isTicking {
                    isTicking = true
                    // What is due is read again after each tick, also while a slow receiver is waited for.
                    group.addTask {
                        try? await Task.sleep(for: pollInterval)
                        return .tick
                    }
                }
                // Nothing is read before the next tick when nothing was due, or the database has failed.
                if due.isEmpty { isPaused = true }
                switch await group.next() {
                case .tick?: (isTicking, isPaused) = (false, false)
                case .ended(let outcome)?:
                    active -= 1
                    await take(outcome, &breaker, delivery.destination)
                    if case .delivered? = outcome { isPaused = false }
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
        case .idle, nil: breaker.abandon(.now)
        case .gone:
            _ = try? await database.execute(DisableDestination(id: id, now: clock.now))
            outbox.disable(id, now: clock.now)
            log.write(.warning, "destination_disabled", ["destination": destination.name])
        }
    }

    private func findDue() async -> [DueQueue] {
        let find = FindDueQueues(destinationID: id, now: clock.now, limit: Int64(Self.readLimit))
        // The database is watched elsewhere.
        return (try? await database.execute(find)) ?? []
    }

    private func deliver(_ queue: DueQueue, _ delivery: QueueDelivery) async -> QueueDelivery.Outcome? {
        try? await delivery.run(queue) { counters.count($0, of: delivery.destination.name) }
    }

    /// The delivery as the destination is now; nil when it gets nothing more.
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
