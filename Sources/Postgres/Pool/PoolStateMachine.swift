/// Which connections exist, what each is doing, and who waits for one.
///
/// There are three lanes. Single statements that only read share the connections of the first, single requests that
/// write those of the second; those of the third are opened when transactions need them, each for one holder at a time.
/// Nobody waits for another lane than his own. Pure: the caller passes the time in and carries the actions out.
struct PoolStateMachine<Request> {
    typealias Instant = ContinuousClock.Instant

    /// What a connection is for.
    enum Lane: Int {
        case reads, commits, leases
        /// One connection that looks whether another server has taken over; see ``probeOtherHost()``.
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

        /// How many leases may be long ones at a time.
        var longLeases: Int { max(1, leasedConnections / 2) }
    }

    enum Action {
        case connect(ConnectionID)
        case close(ConnectionID)
        case grant(Request, ConnectionID)
        /// These become one group, in this order.
        case grantTogether([Request], ConnectionID)
        case refuse(Request, retryAfter: Duration)
        /// Commit something on this connection, where a place is reserved, to find out whether commits end again.
        case probe(ConnectionID)
        /// After ``shutDown()``: every connection is closed.
        case finished
    }

    enum Phase {
        case absent
        case waitingToConnect(until: Instant)
        case connecting
        /// Shared; `load` requests are under way.
        case ready(load: Int)
        /// Shared; takes no more requests and is closed after the last.
        case retiring(load: Int)
        case leased(isLong: Bool)
        case idle(since: Instant)
        /// Given up, while the server's end of it may still be at work: it counts until that is gone.
        case givenUp
    }

    struct Slot {
        let lane: Lane
        var phase = Phase.absent
        var generation = 0
        /// Connections that failed in a row.
        var failures = 0
        /// Whether it has said nothing for so long that nothing more is sent on it.
        var isStalled = false
        /// Whether a group is under way: nothing else is sent until its end is answered.
        var hasGroup = false
        /// The one in which its connection was found to be good.
        var epoch = 0
    }

    struct Waiter {
        var request: Request
        var deadline: Instant
        var number: Int
        /// What it sends, when it may be a member of a group.
        var bytes = 0
    }

    /// Somebody's place in a queue.
    struct WaiterID {
        fileprivate let place: WaitingLists<Waiter>.Place
        fileprivate let queue: Int
    }

    let settings: Settings
    var slots: [Slot] = []
    var waiters = WaitingLists<Waiter>()
    /// By lane; long leases wait in a queue of their own, and so do those who may be members of a group: of any connection
    /// that commits, or of one.
    var queues: [WaitingLists<Waiter>.List]
    private var nextNumber = 0
    var isShutDown = false
    /// Whether the server is one node of a cluster, where requests that write share no transaction.
    var isDistributed = false
    var hasFinished = false
    /// Whether writes are refused, because a commit does not end.
    var commitsAreClosed = false
    var probe: ConnectionID?
    /// The present one; see ``begin(_:)``.
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

    /// The slots of `lane`.
    func range(_ lane: Lane) -> Range<Int> {
        let commits = settings.readConnections + settings.commitConnections
        return switch lane {
        case .reads: 0..<settings.readConnections
        case .commits: settings.readConnections..<commits
        case .leases: commits..<slots.count - 1
        case .probe: slots.count - 1..<slots.count
        }
    }

    /// Whether requests that read can be sent; when there is no lane for them, those that write.
    var isReady: Bool {
        slots[range(settings.readConnections > 0 ? .reads : .commits)].contains {
            if case .ready = $0.phase { true } else { false }
        }
    }

    var waiterCount: Int { waiters.count }

    /// How many wait for a connection of `lane`.
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

    /// A place on the ready connection with the least to do; `nil` when the caller has to wait its turn.
    mutating func acquireShared(_ lane: Lane) -> ConnectionID? {
        guard queues[lane.rawValue].isEmpty, !isShutDown else { return nil }
        return reserveLeastLoaded(lane)
    }

    /// - Parameter number: That of who comes to it; without one he has come this moment.
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

    /// Queues for a shared connection; `nil` when the queue is full, writes are refused, or the pool is shut down.
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

    /// A request on a shared connection has ended.
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

    /// The connection is of no more use to new requests (its server is the primary no more): those under way finish.
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

    /// Somebody who waited has gone.
    /// - Returns: Who it was, if he was still waiting.
    mutating func cancel(_ waiter: WaiterID) -> Request? {
        waiters.remove(waiter.place, from: &queues[waiter.queue])?.request
    }

    mutating func connect(_ slot: Int) -> Action {
        slots[slot].phase = .connecting
        return .connect(id(slot))
    }

    func id(_ slot: Int) -> ConnectionID { ConnectionID(slot: slot, generation: slots[slot].generation) }

    /// Whether `id` is the connection that its slot has now: events of an earlier one come too late.
    func isCurrent(_ id: ConnectionID) -> Bool {
        slots[id.slot].generation == id.generation
    }
}

/// One connection of a pool: a slot, and which of the connections that the slot has had.
struct ConnectionID: Hashable {
    var slot: Int
    var generation: Int
}
