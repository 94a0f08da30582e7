internal import EventLoop

/// The current state of a client, and its counts since its start.
public struct PostgresStatistics: Sendable {
    /// A kind of connection, see ``PostgresConfiguration``.
    public enum Lane: String, Sendable, CaseIterable {
        case reads, commits, leases
    }

    /// The counts of one kind of connection.
    public struct LaneCounts: Sendable {
        /// Connections that are open now.
        public var open = 0
        /// For reads and commits, the number of pending requests. For leases, the number of connections in use.
        public var inUse = 0
        /// Requests that wait for a connection now.
        public var waiting = 0
        /// Connections opened since the start. A number above `open` means that some were closed.
        public var opened = 0
        /// Requests that waited and were served, and their total waiting time.
        public var waits = 0
        public var waited = Duration.zero

        public init() {}
    }

    /// Queues of requests with the same key (``RequestKey``). Waiting requests hold no connection.
    public struct KeyWaitCounts: Sendable {
        /// Requests that wait now.
        public var waiting = 0
        /// Requests that waited and got the key, and their total waiting time.
        public var waits = 0
        public var waited = Duration.zero

        public init() {}
    }

    /// Requests, counted under their first statement that is not preliminary (``Statement/isPreliminary``).
    public struct StatementCounts: Sendable {
        public var count = 0
        public var failed = 0
        /// The total time from sending to the last reply.
        public var duration = Duration.zero
    }

    public var lanes: [Lane: LaneCounts] = [:]
    /// Keyed by the statement's name, as in `FindItem`.
    public var statements: [String: StatementCounts] = [:]
    /// True if at least one connection is ready for statements.
    public var isReady = false
    /// True if writes are rejected because a commit does not end.
    public var commitsAreStalled = false
    /// The reason why the last connection could not be opened; nil after a success.
    public var failure: ConnectionFailure?

    /// Adds the state and counts of another client.
    public mutating func add(_ other: PostgresStatistics) {
        for (lane, counts) in other.lanes {
            lanes[lane, default: .init()].open += counts.open
            lanes[lane, default: .init()].inUse += counts.inUse
            lanes[lane, default: .init()].waiting += counts.waiting
            lanes[lane, default: .init()].opened += counts.opened
            lanes[lane, default: .init()].waits += counts.waits
            lanes[lane, default: .init()].waited += counts.waited
        }
        for (name, counts) in other.statements {
            statements[name, default: .init()].count += counts.count
            statements[name, default: .init()].failed += counts.failed
            statements[name, default: .init()].duration += counts.duration
        }
        isReady = isReady && other.isReady
        commitsAreStalled = commitsAreStalled || other.commitsAreStalled
        failure = failure ?? other.failure
    }
}

/// Counts events for ``PostgresStatistics``. Lives on the client's loop.
struct StatisticsRecorder {
    /// Indexed by the statement's number in the catalogue.
    private var statements: [PostgresStatistics.StatementCounts] = []
    private var lanes = Array(
        repeating: PostgresStatistics.LaneCounts(), count: PostgresStatistics.Lane.allCases.count)

    mutating func ended(_ outcome: Execution.Outcome, statement: Int, after duration: Duration) {
        guard statement >= 0 else { return }
        while statements.count <= statement { statements.append(.init()) }
        statements[statement].count += 1
        statements[statement].duration += duration
        if case .failed = outcome { statements[statement].failed += 1 }
    }

    mutating func granted(_ lane: Int, after duration: Duration) {
        guard lanes.indices.contains(lane) else { return }
        lanes[lane].waits += 1
        lanes[lane].waited += duration
    }

    mutating func opened(_ lane: Int) {
        if lanes.indices.contains(lane) { lanes[lane].opened += 1 }
    }

    func counts(_ lane: PostgresStatistics.Lane, _ index: Int) -> PostgresStatistics.LaneCounts { lanes[index] }

    func statements(_ definitions: [StatementCatalog.Definition]) -> [String: PostgresStatistics.StatementCounts] {
        var named: [String: PostgresStatistics.StatementCounts] = [:]
        for (number, counts) in statements.enumerated() where counts.count > 0 {
            // For a generic type, such as Owned<FindSessions>, the name of its argument.
            let name = definitions[number].name.split(separator: ".").last?.prefix { $0 != ">" }
            named[String(name ?? "")] = counts
        }
        return named
    }
}

extension PostgresClient {
    /// Returns the client's current state, and its counts since its start.
    public func statistics() -> PostgresStatistics {
        loop.preconditionInLoop()
        var result = PostgresStatistics()
        for (index, lane) in PostgresStatistics.Lane.allCases.enumerated() {
            var counts = recorder.counts(lane, index)
            pool.add(to: &counts, of: PoolLane(rawValue: index) ?? .reads)
            result.lanes[lane] = counts
        }
        result.statements = recorder.statements(catalog.definitions)
        result.isReady = pool.isReady
        result.commitsAreStalled = pool.commitsAreClosed
        result.failure = failure
        return result
    }
}

extension PoolStateMachine {
    fileprivate func add(to counts: inout PostgresStatistics.LaneCounts, of lane: PoolLane) {
        for slot in slots where slot.lane == lane {
            switch slot.phase {
            case .ready(let load), .retiring(let load):
                counts.open += 1
                counts.inUse += load
            case .leased:
                counts.open += 1
                counts.inUse += 1
            case .idle: counts.open += 1
            case .absent, .waitingToConnect, .connecting, .givenUp: break
            }
        }
        counts.waiting = waitingCount(lane)
    }
}
