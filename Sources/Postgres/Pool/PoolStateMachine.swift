/// Which connections exist, what each is doing, and who waits for one.
///
/// The first slots are shared by the single statements of many requests; the others are opened when transactions
/// need them, each for one holder at a time. Pure: the caller passes the time in and carries the actions out.
struct PoolStateMachine {
    typealias Instant = ContinuousClock.Instant

    struct Settings {
        var sharedConnections: Int
        var leasedConnections: Int
        var pipelineDepth: Int
        var queueLimit: Int
        var backOff: ClosedRange<Duration>
        var leasedIdleTimeout: Duration
    }

    /// One connection: a slot, and which of the connections that the slot has had.
    struct ConnectionID: Hashable {
        var slot: Int
        var generation: Int
    }

    struct WaiterID: Hashable {
        var number: Int
    }

    enum Action: Equatable {
        case connect(ConnectionID)
        case close(ConnectionID)
        case grant(WaiterID, ConnectionID)
        case refuse(WaiterID, retryAfter: Duration)
        /// After ``shutDown()``: every connection is closed.
        case finished
    }

    private enum Phase {
        case absent
        case waitingToConnect(until: Instant)
        case connecting
        /// Shared; `load` requests are under way.
        case ready(load: Int)
        /// Shared; takes no more requests and is closed after the last.
        case retiring(load: Int)
        case leased
        case idle(since: Instant)
    }

    private struct Slot {
        var phase = Phase.absent
        var generation = 0
        /// Connections that failed in a row.
        var failures = 0
    }

    private struct Waiter {
        var id: WaiterID
        var deadline: Instant
    }

    private let settings: Settings
    private var slots: [Slot]
    private var sharedWaiters = Queue<Waiter>()
    private var leaseWaiters = Queue<Waiter>()
    private var nextWaiter = 0
    private var isShutDown = false
    private var hasFinished = false

    init(settings: Settings) {
        self.settings = settings
        slots = Array(repeating: Slot(), count: settings.sharedConnections + settings.leasedConnections)
    }

    /// Whether a shared connection can take requests.
    var isReady: Bool {
        slots.prefix(settings.sharedConnections).contains { if case .ready = $0.phase { true } else { false } }
    }

    var waiterCount: Int { sharedWaiters.count + leaseWaiters.count }

    /// Opens the shared connections.
    mutating func start() -> [Action] {
        (0..<settings.sharedConnections).map { connect($0) }
    }

    // MARK: Shared use

    /// A place on the ready connection with the least to do; `nil` when the caller has to wait its turn.
    mutating func acquireShared() -> ConnectionID? {
        guard sharedWaiters.isEmpty, !isShutDown else { return nil }
        return reserveLeastLoaded()
    }

    private mutating func reserveLeastLoaded() -> ConnectionID? {
        var best = -1
        var leastLoad = settings.pipelineDepth
        for index in 0..<settings.sharedConnections {
            if case .ready(let load) = slots[index].phase, load < leastLoad {
                best = index
                leastLoad = load
            }
        }
        guard best >= 0 else { return nil }
        slots[best].phase = .ready(load: leastLoad + 1)
        return ConnectionID(slot: best, generation: slots[best].generation)
    }

    /// Queues for a shared connection; `nil` when the queue is full or the pool is shut down.
    mutating func waitForShared(until deadline: Instant) -> WaiterID? {
        guard !isShutDown, waiterCount < settings.queueLimit else { return nil }
        let id = makeWaiterID()
        sharedWaiters.append(Waiter(id: id, deadline: deadline))
        return id
    }

    /// A request on a shared connection has ended.
    mutating func releaseShared(_ id: ConnectionID) -> Action? {
        guard isCurrent(id) else { return nil }
        switch slots[id.slot].phase {
        case .ready(let load):
            slots[id.slot].phase = .ready(load: load - 1)
            if isShutDown { return load == 1 ? .close(id) : nil }
            guard let waiter = sharedWaiters.first, let granted = reserveLeastLoaded() else { return nil }
            _ = sharedWaiters.popFirst()
            return .grant(waiter.id, granted)
        case .retiring(let load):
            slots[id.slot].phase = .retiring(load: load - 1)
            return load == 1 ? .close(id) : nil
        default:
            return nil
        }
    }

    /// The connection is of no more use to new requests (its server has become a standby): those under way finish.
    mutating func retire(_ id: ConnectionID) -> Action? {
        guard isCurrent(id), case .ready(let load) = slots[id.slot].phase else { return nil }
        slots[id.slot].phase = .retiring(load: load)
        return load == 0 ? .close(id) : nil
    }

    // MARK: Leases

    /// Queues for a connection of one's own; the grant may be among the actions. `nil` like ``waitForShared(until:)``.
    mutating func waitForLease(until deadline: Instant) -> (WaiterID, [Action])? {
        guard !isShutDown, settings.leasedConnections > 0, waiterCount < settings.queueLimit else { return nil }
        let id = makeWaiterID()
        leaseWaiters.append(Waiter(id: id, deadline: deadline))
        return (id, serveLeaseWaiters())
    }

    /// The holder is done. A connection that is not `reusable` is closed.
    mutating func releaseLease(_ id: ConnectionID, reusable: Bool, now: Instant) -> [Action] {
        guard isCurrent(id), case .leased = slots[id.slot].phase else { return [] }
        guard reusable, !isShutDown else { return [.close(id)] }
        slots[id.slot].phase = .idle(since: now)
        return serveLeaseWaiters()
    }

    private var leaseSlots: Range<Int> { settings.sharedConnections..<slots.count }

    /// Grants idle connections, and opens as many as there are waiters left.
    private mutating func serveLeaseWaiters() -> [Action] {
        var actions: [Action] = []
        for index in leaseSlots {
            guard case .idle = slots[index].phase, let waiter = leaseWaiters.popFirst() else { continue }
            slots[index].phase = .leased
            actions.append(.grant(waiter.id, ConnectionID(slot: index, generation: slots[index].generation)))
        }
        var opening = leaseSlots.count { index in
            switch slots[index].phase {
            case .connecting, .waitingToConnect: true
            default: false
            }
        }
        for index in leaseSlots where opening < leaseWaiters.count {
            guard case .absent = slots[index].phase else { continue }
            actions.append(connect(index))
            opening += 1
        }
        return actions
    }

    // MARK: Connections

    /// The connection is open and set up.
    mutating func connected(_ id: ConnectionID, now: Instant) -> [Action] {
        guard isCurrent(id), case .connecting = slots[id.slot].phase else { return [] }
        slots[id.slot].failures = 0
        if isShutDown { return [.close(id)] }
        if leaseSlots.contains(id.slot) {
            slots[id.slot].phase = .idle(since: now)
            return serveLeaseWaiters()
        }
        slots[id.slot].phase = .ready(load: 0)
        var actions: [Action] = []
        while let waiter = sharedWaiters.first, let granted = reserveLeastLoaded() {
            _ = sharedWaiters.popFirst()
            actions.append(.grant(waiter.id, granted))
        }
        return actions
    }

    /// The connection has ended, or could not be opened. Requests that were under way on it are gone. `jitter`, from 0
    /// to 1, spreads the attempts of many clients.
    mutating func ended(_ id: ConnectionID, now: Instant, jitter: Double) -> [Action] {
        guard isCurrent(id) else { return [] }
        let failed: Bool
        if case .connecting = slots[id.slot].phase { failed = true } else { failed = false }
        slots[id.slot].generation += 1
        slots[id.slot].phase = .absent
        if isShutDown { return finishIfEmpty() }
        slots[id.slot].failures = failed ? slots[id.slot].failures + 1 : 0
        if !failed && leaseSlots.contains(id.slot) { return serveLeaseWaiters() }
        let exponent = min(max(slots[id.slot].failures - 1, 0), 16)
        let delay = min(settings.backOff.lowerBound * (1 << exponent), settings.backOff.upperBound)
        slots[id.slot].phase = .waitingToConnect(until: now + delay * (0.5 + jitter / 2))
        return []
    }

    // MARK: Time

    /// Connects again, refuses those who have waited too long, closes what has been idle too long.
    mutating func advance(to now: Instant) -> [Action] {
        var actions: [Action] = []
        for index in slots.indices {
            switch slots[index].phase {
            case .waitingToConnect(let until) where until <= now:
                slots[index].phase = .absent
                if !leaseSlots.contains(index) { actions.append(connect(index)) }
            case .idle(let since) where since + settings.leasedIdleTimeout <= now:
                // Nobody gets it any more; the caller tells when it is closed.
                slots[index].phase = .leased
                actions.append(.close(ConnectionID(slot: index, generation: slots[index].generation)))
            default: break
            }
        }
        while let waiter = sharedWaiters.first, waiter.deadline <= now {
            _ = sharedWaiters.popFirst()
            actions.append(.refuse(waiter.id, retryAfter: retryDelay(now)))
        }
        while let waiter = leaseWaiters.first, waiter.deadline <= now {
            _ = leaseWaiters.popFirst()
            actions.append(.refuse(waiter.id, retryAfter: retryDelay(now)))
        }
        return actions + serveLeaseWaiters()
    }

    /// When ``advance(to:)`` has something to do next.
    var nextDeadline: Instant? {
        var next: Instant?
        func consider(_ instant: Instant) { next = min(next ?? instant, instant) }
        for slot in slots {
            switch slot.phase {
            case .waitingToConnect(let until): consider(until)
            case .idle(let since): consider(since + settings.leasedIdleTimeout)
            default: break
            }
        }
        if let waiter = sharedWaiters.first { consider(waiter.deadline) }
        if let waiter = leaseWaiters.first { consider(waiter.deadline) }
        return next
    }

    /// A good time for somebody who was refused to come back: after the next attempt to connect, at least a second.
    func retryDelay(_ now: Instant) -> Duration {
        var delay = Duration.seconds(1)
        if isReady { return delay }
        for slot in slots.prefix(settings.sharedConnections) {
            if case .waitingToConnect(let until) = slot.phase { delay = max(delay, until - now) }
        }
        return delay
    }

    /// Somebody who waited has gone.
    /// - Returns: whether he was still waiting.
    mutating func cancel(_ waiter: WaiterID) -> Bool {
        sharedWaiters.remove { $0.id == waiter } != nil || leaseWaiters.remove { $0.id == waiter } != nil
    }

    // MARK: End

    /// Takes no more requests, refuses those who wait, and closes each connection after its last request.
    mutating func shutDown() -> [Action] {
        if isShutDown { return [] }
        isShutDown = true
        var actions: [Action] = []
        while let waiter = sharedWaiters.popFirst() ?? leaseWaiters.popFirst() {
            actions.append(.refuse(waiter.id, retryAfter: .seconds(1)))
        }
        for index in slots.indices {
            switch slots[index].phase {
            case .connecting, .idle, .ready(load: 0):
                actions.append(.close(ConnectionID(slot: index, generation: slots[index].generation)))
            case .waitingToConnect:
                slots[index].phase = .absent
            case .absent, .ready, .retiring, .leased: break
            }
        }
        return actions + finishIfEmpty()
    }

    private mutating func finishIfEmpty() -> [Action] {
        let isEmpty = slots.allSatisfy { if case .absent = $0.phase { true } else { false } }
        guard isEmpty, !hasFinished else { return [] }
        hasFinished = true
        return [.finished]
    }

    private mutating func connect(_ slot: Int) -> Action {
        slots[slot].phase = .connecting
        return .connect(ConnectionID(slot: slot, generation: slots[slot].generation))
    }

    private mutating func makeWaiterID() -> WaiterID {
        nextWaiter += 1
        return WaiterID(number: nextWaiter)
    }

    /// Whether `id` is the connection that its slot has now: events of an earlier one come too late.
    private func isCurrent(_ id: ConnectionID) -> Bool {
        slots[id.slot].generation == id.generation
    }
}
