public import Postgres
internal import Synchronization

/// Delivers outgoing events of one node. It reads the destinations, runs a ``DestinationRunner`` for each, and stores
/// the changes that requests have recorded.
public struct EventDelivery: Sendable {
    /// The time between two reads of the destinations.
    public static let reloadInterval = Duration.seconds(5)
    /// The shortest time between two reports of an account's changes.
    public static let changeInterval = Duration.seconds(30)

    let outbox: Outbox
    let database: PostgresClient
    let installation: Installation
    let client: any WebhookClient
    let clock: any WallClock
    let masterKey: @Sendable () -> MasterKey
    let counters: DeliveryCounters
    let log: Log
    var reload = reloadInterval
    var change = changeInterval
    var poll = Duration.seconds(1)
    var breakerPause = CircuitBreaker.firstPause

    /// - Parameters:
    ///   - database: The client of the loop that runs ``run()``.
    ///   - masterKey: Returns the current master key, which may rotate.
    public init(
        _ outbox: Outbox, database: PostgresClient, installation: Installation, client: any WebhookClient,
        clock: any WallClock, masterKey: @escaping @Sendable () -> MasterKey, counters: DeliveryCounters, log: Log
    ) {
        self.outbox = outbox
        self.database = database
        self.installation = installation
        self.client = client
        self.clock = clock
        self.masterKey = masterKey
        self.counters = counters
        self.log = log
    }

    /// Delivers until its task is cancelled. Runs once, on the loop of `database`.
    public func run() async {
        await withDiscardingTaskGroup { group in
            let runners = RunningDestinations()
            var lastChanges = ContinuousClock.now
            while !Task.isCancelled {
                await read()
                for runner in startable(runners) {
                    group.addTask {
                        await runner.run()
                        runners.end(runner.id)
                    }
                }
                if ContinuousClock.now - lastChanges >= change {
                    lastChanges = .now
                    let changed = outbox.takeChanges()
                    if !changed.isEmpty { group.addTask { await store(changed) } }
                }
                try? await Task.sleep(for: min(reload, change))
            }
            group.cancelAll()
        }
    }

    /// Reads the destinations. Keeps the earlier ones if the database does not answer.
    func read() async {
        let disabledCount = outbox.disabledCount
        if let destinations = try? await database.execute(FindDestinations()) {
            outbox.use(destinations, readAt: disabledCount)
        }
    }

    private func startable(_ runners: RunningDestinations) -> [DestinationRunner] {
        guard let pairwiseKey = installation.pairwiseKey else { return [] }
        return outbox.destinations.filter {
            !$0.isDisabled && $0.url != nil && !$0.secrets(at: clock.now, masterKey()).isEmpty && runners.begin($0.id)
        }.map {
            DestinationRunner(
                id: $0.id, outbox: outbox, database: database, client: client, clock: clock, masterKey: masterKey,
                pairwiseKey: pairwiseKey, counters: counters, log: log, pollInterval: poll, breakerPause: breakerPause)
        }
    }

    /// Stores the changes of accounts, one after another, because no request waits for them. A failure loses one
    /// change.
    func store(_ changed: Set<AccountID>) async {
        let destinations = outbox.destinations.filter { $0.gets(.changes) }
        for account in changed {
            for destination in destinations {
                if Task.isCancelled { return }
                let queue = QueueChange(accountID: account, destinationID: destination.id, now: clock.now)
                _ = try? await database.execute(queue, StoreChange(queue: queue))
            }
        }
    }
}

/// The destinations that have a runner.
final class RunningDestinations: Sendable {
    private let ids = Mutex<Set<DestinationID>>([])

    /// Adds a destination. Returns false if it already has a runner.
    func begin(_ id: DestinationID) -> Bool { ids.withLock { $0.insert(id).inserted } }

    func end(_ id: DestinationID) { _ = ids.withLock { $0.remove(id) } }
}

/// Counts the delivery attempts of one node for metrics.
public final class DeliveryCounters: Sendable {
    /// An attempt's result, by destination.
    public struct Label: Sendable, Hashable, Comparable {
        public let destination: String
        /// `delivered`, `rejected`, `gone` or a ``WebhookFailure``.
        public let result: String

        public static func < (left: Label, right: Label) -> Bool {
            (left.destination, left.result) < (right.destination, right.result)
        }
    }

    private struct State {
        var attempts: [Label: Int] = [:]
        var open: Set<String> = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Attempts since the start.
    public var attempts: [(label: Label, count: Int)] {
        state.withLock { $0.attempts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    /// The names of destinations whose circuit breaker is open.
    public var openBreakers: Set<String> { state.withLock { $0.open } }

    func count(_ outcome: WebhookOutcome, of destination: DestinationName) {
        let result =
            switch outcome {
            case .status(200...299): "delivered"
            case .status(410): "gone"
            case .status: "rejected"
            case .failed(let failure): failure.rawValue
            }
        state.withLock {
            $0.attempts[Label(destination: destination.description, result: result), default: 0] += 1
        }
    }

    func note(_ breaker: CircuitBreaker, of destination: DestinationName) {
        state.withLock { state in
            if breaker.isOpen {
                state.open.insert(destination.description)
            } else {
                state.open.remove(destination.description)
            }
        }
    }
}
