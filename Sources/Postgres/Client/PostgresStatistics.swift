internal import EventLoop

/// What a client is at, and what it has counted since its start.
public struct PostgresStatistics: Sendable {
    /// A kind of connection, see ``PostgresConfiguration``.
    public enum Lane: String, Sendable, CaseIterable {
        case reads, commits, leases
    }

    /// One kind of connection.
    public struct LaneCounts: Sendable {
        /// Connections that are open now.
        public var open = 0
        /// Of reads and commits: requests under way now. Of leases: connections that somebody has.
        public var inUse = 0
        /// Requests that wait for a connection now.
        public var waiting = 0
        /// Connections opened since the start: more than there are means that some were lost.
        public var opened = 0
        /// Requests that have waited and were served, and for how long in all.
        public var waits = 0
        public var waited = Duration.zero

        public init() {}
    }

    /// Requests of one key wait for each other (``RequestKey``), and hold no connection while they do.
    public struct KeyWaitCounts: Sendable {
        /// Requests that wait now.
        public var waiting = 0
        /// Requests that have waited and had their turn, and for how long in all.
        public var waits = 0
        public var waited = Duration.zero

        public init() {}
    }

    /// Requests by their first statement that is not preliminary (``Statement/isPreliminary``).
    public struct StatementCounts: Sendable {
        public var count = 0
        public var failed = 0
        /// From sending to the last answer, in all.
        public var duration = Duration.zero
    }

    public var lanes: [Lane: LaneCounts] = [:]
    /// By the name of the statement, as in `FindItem`.
    public var statements: [String: StatementCounts] = [:]
    /// Whether at least one connection is ready for statements.
    public var isReady = false
    /// Whether writes are refused, because a commit does not end.
    public var commitsAreStalled = false
    /// Why the last connection could not be opened; nil after one was.
    public var failure: ConnectionFailure?

    /// Adds what another client is at, and has counted.
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

/// Counts for ``PostgresStatistics`` as they come. Lives on the client's loop.
struct StatisticsRecorder {
    /// By the statement's number in the catalog.
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
            // Of a generic one, such as Owned<FindSessions>, what it is made of.
            let name = definitions[number].name.split(separator: ".").last?.prefix { $0 != ">" }
            named[String(name ?? "")] = counts
        }
        return named
    }
}

extension PostgresClient {
    /// What the client is at, and what it has counted since its start.
    public func statistics() -> PostgresStatistics {
        loop.preconditionInLoop()
        var result = PostgresStatistics()
        for (index, lane) in PostgresStatistics.Lane.allCases.enumerated() {
            var counts = recorder.counts(lane, index)
            pool.add(to: &counts, of: PoolStateMachine<Execution>.Lane(rawValue: index) ?? .reads)
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
    fileprivate func add(to counts: inout PostgresStatistics.LaneCounts, of lane: Lane) {
        for slot in slots[range(lane)] {
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
