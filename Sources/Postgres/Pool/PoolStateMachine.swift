/// Manages connections and the requests that wait for them.
///
/// There are three lanes. Statements that only read share the connections of the first lane. Single requests that write
/// share those of the second. Those of the third are opened when transactions need them, each for one holder at a time.
/// Requests queue per lane, so a full lane does not block another.
///
/// Pure: the caller passes the time in and executes the actions.
struct PoolStateMachine<Request> {
    typealias Instant = ContinuousClock.Instant

    /// The use of a connection.
    enum Lane: Int {
        case reads, commits, leases
        /// A connection that probes for a takeover; see ``probeOtherHost()``.
        case probe
    }

    struct Settings {
        var readConnections: Int
        var commitConnections: Int
        var leasedConnections: Int
        var pipelineDepth: Int
        var queueLimit: Int
        var backOff: ClosedRange<Duration>
        var leasedIdleTimeout: Duration

        var longLeases: Int { max(1, leasedConnections / 2) }
    }

    enum Action {
        case connect(ConnectionID)
        case close(ConnectionID)
        case grant(Request, ConnectionID)
        /// Makes the requests one group, in this order.
        case grantTogether([Request], ConnectionID)
        case refuse(Request, retryAfter: Duration)
        /// Commit a probe on this connection, which has a place reserved, to test whether commits end again.
        case probe(ConnectionID)
        /// Every connection is closed, after ``shutDown()``.
        case finished
    }

    enum Phase {
        case absent
        case waitingToConnect(until: Instant)
        case connecting
        /// Shared, with `load` pending requests.
        case ready(load: Int)
        /// Shared. Takes no more requests and is closed after the last one.
        case retiring(load: Int)
        case leased(isLong: Bool)
        case idle(since: Instant)
        /// Given up while its server process may still be working. The slot stays occupied until that has ended.
        case givenUp
    }

    struct Slot {
        let lane: Lane
        var phase = Phase.absent
        var generation = 0
        /// The number of consecutive failures to connect.
        var failures = 0
        /// True if it has been silent for so long that nothing more is sent on it.
        var isStalled = false
        /// True while a group is pending. Nothing else is sent until its end is answered.
        var hasGroup = false
        /// The generation in which its connection was found usable.
        var epoch = 0
    }

    struct Waiter {
        var request: Request
        var deadline: Instant
        var number: Int
        /// The number of bytes that it sends, if it may join a group.
        var bytes = 0
    }

    /// A waiter's position in a queue.
    struct WaiterID {
        fileprivate let place: WaitingLists<Waiter>.Place
        fileprivate let queue: Int
    }

    let settings: Settings
    var slots: [Slot] = []
    var waiters = WaitingLists<Waiter>()
    /// Queues by lane. Long leases have a queue of their own.
    ///
    /// Requests that may join a group also have queues: one for any write connection, and one for each.
    var queues: [WaitingLists<Waiter>.List]
    private var nextNumber = 0
    var isShutDown = false
    /// True if the server is a cluster node, where writing requests share no transaction.
    var isDistributed = false
    var hasFinished = false
    /// True if writes are rejected because a commit does not end.
    var commitsAreClosed = false
    var probe: ConnectionID?
    /// The current generation; see ``begin(_:)``.
    var epoch = 0

    init(settings: Settings) {
        self.settings = settings
        queues = Array(repeating: WaitingLists<Waiter>.List(), count: 5 + settings.commitConnections)
        slots += Array(repeating: Slot(lane: .reads), count: settings.readConnections)
        slots += Array(repeating: Slot(lane: .commits), count: settings.commitConnections)
        slots += Array(repeating: Slot(lane: .leases), count: settings.leasedConnections)
        slots.append(Slot(lane: .probe))
    }

    static var longQueue: Int { 3 }

    func range(_ lane: Lane) -> Range<Int> {
        let commits = settings.readConnections + settings.commitConnections
        return switch lane {
        case .reads: 0..<settings.readConnections
        case .commits: settings.readConnections..<commits
        case .leases: commits..<slots.count - 1
        case .probe: slots.count - 1..<slots.count
        }
    }

    /// True if reads can be sent; without a lane for them, if writes can.
    var isReady: Bool {
        slots[range(settings.readConnections > 0 ? .reads : .commits)].contains {
            if case .ready = $0.phase { true } else { false }
        }
    }

    var waiterCount: Int { waiters.count }

    /// Returns the number of requests that wait for a connection of `lane`.
    func waitingCount(_ lane: Lane) -> Int {
        switch lane {
        case .reads: queues[lane.rawValue].count
        case .commits: queues[lane.rawValue].count + queues[4...].reduce(0) { $0 + $1.count }
        case .leases: queues[lane.rawValue].count + queues[Self.longQueue].count
        case .probe: 0
        }
    }

    /// Opens the shared connections.
    mutating func start() -> [Action] {
        (0..<range(.leases).lowerBound).map { connect($0) }
    }

    // MARK: Shared use

    /// Reserves a place on the ready connection with the lowest load; `nil` when the caller has to queue.
    mutating func acquireShared(_ lane: Lane) -> ConnectionID? {
        guard queues[lane.rawValue].isEmpty, !isShutDown else { return nil }
        return reserveLeastLoaded(lane)
    }

    /// - Parameter number: The waiter's number; without one, the request has just arrived.
    private mutating func reserveLeastLoaded(_ lane: Lane, for number: Int = .max) -> ConnectionID? {
        if lane == .commits && commitsAreClosed { return nil }
        var best = -1
        var leastLoad = settings.pipelineDepth
        for index in range(lane) {
            if case .ready(let load) = slots[index].phase, load < leastLoad, !slots[index].isStalled,
                !slots[index].hasGroup, !isKept(index, from: number)
            {
                best = index
                leastLoad = load
            }
        }
        guard best >= 0 else { return nil }
        slots[best].phase = .ready(load: leastLoad + 1)
        return id(best)
    }

    /// Queues for a shared connection; `nil` when the queue is full, writes are rejected, or the pool is shut down.
    mutating func waitForShared(_ request: Request, _ lane: Lane, until deadline: Instant) -> WaiterID? {
        if lane == .commits && commitsAreClosed { return nil }
        return enqueue(request, lane.rawValue, until: deadline)
    }

    mutating func enqueue(_ request: Request, _ queue: Int, until deadline: Instant, bytes: Int = 0) -> WaiterID? {
        guard !isShutDown, waiters.count < settings.queueLimit else { return nil }
        nextNumber += 1
        let waiter = Waiter(request: request, deadline: deadline, number: nextNumber, bytes: bytes)
        return WaiterID(place: waiters.append(waiter, to: &queues[queue]), queue: queue)
    }

    /// Handles the end of a request on a shared connection.
    mutating func releaseShared(_ id: ConnectionID) -> [Action] {
        guard isCurrent(id) else { return [] }
        switch slots[id.slot].phase {
        case .ready(let load):
            slots[id.slot].phase = .ready(load: load - 1)
            if load == 1 { slots[id.slot].hasGroup = false }
            if isShutDown { return load == 1 ? [.close(id)] : [] }
            return slots[id.slot].lane == .commits ? serveCommits(id.slot) : serveOneShared(.reads).map { [$0] } ?? []
        case .retiring(let load):
            slots[id.slot].phase = .retiring(load: load - 1)
            return load == 1 ? [.close(id)] : []
        default:
            return []
        }
    }

    mutating func serveOneShared(_ lane: Lane) -> Action? {
        guard let first = waiters.first(of: queues[lane.rawValue]),
            let granted = reserveLeastLoaded(lane, for: first.number),
            let waiter = waiters.popFirst(of: &queues[lane.rawValue])
        else { return nil }
        return .grant(waiter.request, granted)
    }

    mutating func serveShared(_ lane: Lane) -> [Action] {
        var actions: [Action] = []
        while let action = serveOneShared(lane) { actions.append(action) }
        return actions
    }

    /// Stops new requests on a connection, because its server is no longer the primary. Pending ones finish.
    mutating func retire(_ id: ConnectionID) -> Action? {
        guard isCurrent(id) else { return nil }
        switch slots[id.slot].phase {
        case .ready(let load):
            slots[id.slot].phase = .retiring(load: load)
            return load == 0 ? .close(id) : nil
        case .idle:
            slots[id.slot].phase = .leased(isLong: false)
            return .close(id)
        default: return nil
        }
    }

    /// Removes a waiter.
    /// - Returns: Its request, if it was still waiting.
    mutating func cancel(_ waiter: WaiterID) -> Request? {
        waiters.remove(waiter.place, from: &queues[waiter.queue])?.request
    }

    mutating func connect(_ slot: Int) -> Action {
        slots[slot].phase = .connecting
        return .connect(id(slot))
    }

    func id(_ slot: Int) -> ConnectionID { ConnectionID(slot: slot, generation: slots[slot].generation) }

    /// Returns true if `id` is the slot's current connection. Events of an earlier one are ignored.
    func isCurrent(_ id: ConnectionID) -> Bool {
        slots[id.slot].generation == id.generation
    }
}

/// Identifies one connection of a pool: its slot, and the generation of the slot's connections.
struct ConnectionID: Hashable {
    var slot: Int
    var generation: Int
}
