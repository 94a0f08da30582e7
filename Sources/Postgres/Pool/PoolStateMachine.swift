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
    }

    enum Action {
        case connect(ConnectionID)
        case close(ConnectionID)
        case grant(Request, ConnectionID)
        /// Makes the requests one group, in this order.
        case grantTogether([Request], ConnectionID)
        case refuse(Request, retryAfter: Duration)
        /// Send a commit on this connection, which has a place reserved, to test whether commits end again.
        case testCommit(ConnectionID)
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
    }

    /// A waiter's position.
    enum WaiterID {
        case read(RequestQueues<Request>.Ticket)
        case write(WriteBatcher<Request>.Ticket)
        case lease(LeaseQueue<Request>.Ticket)
    }

    private let settings: Settings
    private(set) var slots: [Slot] = []
    /// The waiters of each lane.
    private var reads = RequestQueues<Request>(count: 1)
    private var writes: WriteBatcher<Request>
    private var leases: LeaseQueue<Request>
    private var isShutDown = false
    private var hasFinished = false
    /// Decides which connections are usable, and whether writes are accepted.
    var failover: FailoverMonitor

    init(settings: Settings) {
        self.settings = settings
        writes = WriteBatcher(connectionCount: settings.commitConnections)
        leases = LeaseQueue(longLimit: max(1, settings.leasedConnections / 2))
        slots += Array(repeating: Slot(lane: .reads), count: settings.readConnections)
        slots += Array(repeating: Slot(lane: .commits), count: settings.commitConnections)
        slots += Array(repeating: Slot(lane: .leases), count: settings.leasedConnections)
        slots.append(Slot(lane: .probe))
        failover = FailoverMonitor(slotCount: slots.count)
    }

    private func range(_ lane: Lane) -> Range<Int> {
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

    /// True if the server is a cluster node.
    var isDistributed: Bool {
        get { writes.isDistributed }
        set { writes.isDistributed = newValue }
    }

    var waiterCount: Int { reads.count + writes.waiterCount + leases.count }

    /// Returns the number of requests that wait for a connection of `lane`.
    func waitingCount(_ lane: Lane) -> Int {
        switch lane {
        case .reads: reads.count
        case .commits: writes.waiterCount
        case .leases: leases.count
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
        guard lane == .reads ? reads.count == 0 : !writes.hasSingle, !isShutDown else { return nil }
        return reserveLeastLoaded(lane)
    }

    /// Reserves a place for the first waiter, or without one for a request that has just arrived.
    private mutating func reserveLeastLoaded(_ lane: Lane) -> ConnectionID? {
        if lane == .commits && commitsAreClosed { return nil }
        var best = -1
        var leastLoad = settings.pipelineDepth
        for index in range(lane) {
            if case .ready(let load) = slots[index].phase, load < leastLoad, !failover.isStalled(index),
                lane == .reads || !writes.hasGroup(writer(index)) && !isGroupNext(index)
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
        guard hasRoom else { return nil }
        if lane == .reads { return .read(reads.add(request, to: 0, until: deadline)) }
        return commitsAreClosed ? nil : .write(writes.addSingle(request, until: deadline))
    }

    /// True if another request may wait.
    private var hasRoom: Bool { !isShutDown && waiterCount < settings.queueLimit }

    /// Handles the end of a request on a shared connection.
    mutating func releaseShared(_ id: ConnectionID) -> [Action] {
        guard isCurrent(id) else { return [] }
        switch slots[id.slot].phase {
        case .ready(let load):
            slots[id.slot].phase = .ready(load: load - 1)
            if load == 1, slots[id.slot].lane == .commits { writes.end(on: writer(id.slot)) }
            if isShutDown { return load == 1 ? [.close(id)] : [] }
            return slots[id.slot].lane == .commits ? serveCommits(id.slot) : serveOneShared(.reads).map { [$0] } ?? []
        case .retiring(let load):
            slots[id.slot].phase = .retiring(load: load - 1)
            return load == 1 ? [.close(id)] : []
        default:
            return []
        }
    }

    private mutating func serveOneShared(_ lane: Lane) -> Action? {
        guard lane == .reads ? reads.count > 0 : writes.hasSingle, let granted = reserveLeastLoaded(lane),
            let request = lane == .reads ? reads.popFirst(of: 0) : writes.popSingle()
        else { return nil }
        return .grant(request, granted)
    }

    private mutating func serveShared(_ lane: Lane) -> [Action] {
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
        switch waiter {
        case .read(let ticket): reads.cancel(ticket)
        case .write(let ticket): writes.cancel(ticket)
        case .lease(let ticket): leases.cancel(ticket)
        }
    }

    private mutating func connect(_ slot: Int) -> Action {
        slots[slot].phase = .connecting
        return .connect(id(slot))
    }

    private func id(_ slot: Int) -> ConnectionID { ConnectionID(slot: slot, generation: slots[slot].generation) }

    /// Returns true if `id` is the slot's current connection. Events of an earlier one are ignored.
    private func isCurrent(_ id: ConnectionID) -> Bool { slots[id.slot].generation == id.generation }
}

/// Identifies one connection of a pool: its slot, and the generation of the slot's connections.
struct ConnectionID: Hashable {
    var slot: Int
    var generation: Int
}

/// Handles commits that do not end.
extension PoolStateMachine {
    /// True if writes are rejected because a commit does not end.
    var commitsAreClosed: Bool { failover.commitsAreClosed }

    /// Handles a connection that is silent for too long during a commit.
    ///
    /// Writes are rejected until a commit ends. One connection keeps trying.
    mutating func stalled(_ id: ConnectionID, now: Instant) -> [Action] {
        guard isCurrent(id), failover.stalled(id) else { return [] }
        if slots[id.slot].lane == .reads { return [] }
        return closeCommits(now: now)
    }

    /// Rejects writes until a commit has ended. One connection keeps trying.
    mutating func closeCommits(now: Instant) -> [Action] {
        if isShutDown { return [] }
        failover.closeCommits()
        var actions: [Action] = []
        let delay = retryDelay(now)
        while let request = writes.popAny() { actions.append(.refuse(request, retryAfter: delay)) }
        return actions + tryCommits()
    }

    /// Handles a reply of a silent connection: its commit has ended.
    mutating func received(_ id: ConnectionID) {
        if isCurrent(id) { failover.received(id, isCommit: slots[id.slot].lane != .reads) }
    }

    /// Handles the end of an ``Action/testCommit(_:)``.
    mutating func commitTested(_ id: ConnectionID, hasCommitted: Bool) {
        failover.tested(id, hasCommitted: hasCommitted)
    }

    /// Starts a test commit on one idle connection, if one is needed.
    private mutating func tryCommits() -> [Action] {
        guard failover.needsTest, !isShutDown else { return [] }
        for index in range(.commits) where isIdle(index) {
            slots[index].phase = .ready(load: 1)
            failover.beginTest(id(index))
            return [.testCommit(id(index))]
        }
        return []
    }
}

/// The life of a connection: it opens, ends, is given up, and is opened again.
extension PoolStateMachine {
    /// Handles a connection that is open and set up.
    /// - Parameter epoch: The epoch in which it was found usable; nil for the current one.
    mutating func connected(_ id: ConnectionID, of epoch: Int? = nil, now: Instant) -> [Action] {
        guard isCurrent(id), case .connecting = slots[id.slot].phase else { return [] }
        slots[id.slot].failures = 0
        if isShutDown { return [.close(id)] }
        failover.opened(id.slot, in: epoch)
        let lane = slots[id.slot].lane
        if lane == .probe || failover.isOutdated(id.slot) {
            slots[id.slot].phase = .retiring(load: 0)
            return [.close(id)]
        }
        if lane == .leases {
            slots[id.slot].phase = .idle(since: now)
            return serveLeaseWaiters()
        }
        slots[id.slot].phase = .ready(load: 0)
        if lane == .reads { return serveShared(lane) }
        return commitsAreClosed ? tryCommits() : serveIdleCommits()
    }

    /// Handles a connection that has ended or could not be opened. Its pending requests are gone.
    /// - Parameters:
    ///   - isGivenUp: True if the server process may still be working, until ``backendIsGone(_:now:)``.
    ///   - jitter: From 0 to 1; spreads the attempts of many clients.
    mutating func ended(_ id: ConnectionID, now: Instant, jitter: Double, isGivenUp: Bool = false) -> [Action] {
        guard isCurrent(id) else { return [] }
        let failed: Bool
        if case .connecting = slots[id.slot].phase { failed = true } else { failed = false }
        slots[id.slot].generation += 1
        slots[id.slot].phase = .absent
        if slots[id.slot].lane == .commits { writes.end(on: writer(id.slot)) }
        failover.ended(id)
        if isShutDown { return finishIfEmpty() }
        slots[id.slot].failures = failed ? slots[id.slot].failures + 1 : 0
        if isGivenUp {
            slots[id.slot].phase = .givenUp
            return keepOneReader(now) + tryCommits() + serveIdleCommits()
        }
        return replace(id.slot, failed: failed, now: now, jitter: jitter) + tryCommits() + serveIdleCommits()
    }

    private mutating func replace(_ index: Int, failed: Bool, now: Instant, jitter: Double) -> [Action] {
        if slots[index].lane == .probe { return probeEnded(failed: failed, now: now) }
        if !failed && slots[index].lane == .leases { return serveLeaseWaiters() }
        let exponent = min(max(slots[index].failures - 1, 0), 16)
        let delay = min(settings.backOff.lowerBound * (1 << exponent), settings.backOff.upperBound)
        slots[index].phase = .waitingToConnect(until: now + delay * (0.5 + jitter / 2))
        return []
    }

    /// Handles the end of the server process behind the connection that `slot` had given up.
    mutating func backendIsGone(_ slot: Int, now: Instant) -> [Action] {
        guard case .givenUp = slots[slot].phase else { return [] }
        slots[slot].phase = .absent
        return replace(slot, failed: false, now: now, jitter: 0)
    }

    /// Keeps one connection that can check whether the others' server processes are gone.
    private mutating func keepOneReader(_ now: Instant) -> [Action] {
        let lane = range(settings.readConnections > 0 ? .reads : .commits)
        let isAnyAlive = lane.contains { index in
            if case .givenUp = slots[index].phase { false } else { true }
        }
        guard !isAnyAlive, let first = lane.first else { return [] }
        slots[first].phase = .absent
        return [connect(first)]
    }

    /// Rejects new and waiting requests, and closes each connection after its last request.
    mutating func shutDown() -> [Action] {
        if isShutDown { return [] }
        isShutDown = true
        var actions: [Action] = []
        while let request = reads.popAny() ?? writes.popAny() ?? leases.popAny() {
            actions.append(.refuse(request, retryAfter: .seconds(1)))
        }
        for index in slots.indices {
            switch slots[index].phase {
            case .connecting, .idle, .ready(load: 0): actions.append(.close(id(index)))
            case .waitingToConnect, .givenUp: slots[index].phase = .absent
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
}

/// Epochs of connections.
extension PoolStateMachine {
    /// The current epoch.
    var epoch: Int { failover.epoch }

    /// Begins an epoch. Connections of earlier ones get no more requests, and are closed after their pending ones.
    mutating func begin(_ epoch: Int) -> [Action] {
        guard failover.begin(epoch) else { return [] }
        return slots.indices.filter { failover.isOutdated($0) }.compactMap { retire(id($0)) }
    }
}

/// Write connections, which requests use alone or as a group (``WriteBatcher``).
extension PoolStateMachine {
    /// Returns the index of a slot among the write connections.
    private func writer(_ slot: Int) -> Int { slot - settings.readConnections }

    /// Reserves an idle connection for a request to be sent alone; `nil` when it has to wait for a group.
    mutating func acquireAlone() -> ConnectionID? {
        if isShutDown || commitsAreClosed || writes.hasSingle { return nil }
        guard let index = range(.commits).first(where: { isIdle($0) && writes.isUnclaimed(writer($0)) })
        else { return nil }
        slots[index].phase = .ready(load: 1)
        return id(index)
    }

    /// Queues a request for the next group. If a connection is idle, call ``serveIdleCommits()`` afterwards.
    /// - Parameter key: The same number for requests that share a key; `nil` for the only holder of a key.
    /// - Returns: `nil` when the queue is full, writes are rejected, or the pool is shut down.
    mutating func waitForGroup(_ request: Request, _ key: Int?, bytes: Int, until deadline: Instant) -> WaiterID? {
        guard !commitsAreClosed, hasRoom else { return nil }
        return .write(
            writes.addMember(
                request, key: key, bytes: bytes, until: deadline, unusable: key == nil ? .init() : unusableWriters))
    }

    /// Grants each idle write connection to waiting requests.
    mutating func serveIdleCommits() -> [Action] {
        if commitsAreClosed || isShutDown { return [] }
        var actions: [Action] = []
        for index in range(.commits) where isIdle(index) { actions += serveCommits(index) }
        return actions
    }

    /// Serves waiters in order of arrival: a group, which needs an idle connection, or single requests.
    private mutating func serveCommits(_ index: Int) -> [Action] {
        if commitsAreClosed { return [] }
        var actions: [Action] = []
        while writes.waiterCount > 0, case .ready(let load) = slots[index].phase, !writes.hasGroup(writer(index)) {
            if !failover.isStalled(index), isGroupNext(index) {
                if load == 0 { actions.append(grantGroup(index)) }
                break
            }
            guard let action = serveOneShared(.commits) else { break }
            actions.append(action)
        }
        return actions
    }

    private mutating func grantGroup(_ index: Int) -> Action {
        let members = writes.beginGroup(on: writer(index), unusable: unusableWriters)
        slots[index].phase = .ready(load: members.count)
        return members.count == 1 ? .grant(members[0], id(index)) : .grantTogether(members, id(index))
    }

    private func isGroupNext(_ index: Int) -> Bool {
        writes.waiterCount > 0 && writes.isGroupNext(on: writer(index), unusable: unusableWriters)
    }

    /// The write connections that can be sent nothing now.
    private var unusableWriters: WriteBatcher<Request>.ConnectionSet {
        var unusable = WriteBatcher<Request>.ConnectionSet()
        for index in range(.commits) {
            if case .ready = slots[index].phase, !failover.isStalled(index) { continue }
            unusable.insert(writer(index))
        }
        return unusable
    }

    private func isIdle(_ index: Int) -> Bool {
        if case .ready(load: 0) = slots[index].phase { return !failover.isStalled(index) }
        return false
    }
}

/// Dedicated connections.
extension PoolStateMachine {
    /// Queues for a dedicated connection. The grant may be among the actions.
    /// - Parameter isLong: True for a long lease. Long leases use at most half of the connections.
    /// - Returns: `nil` when the queue is full or the pool is shut down.
    mutating func waitForLease(
        _ request: Request, isLong: Bool = false, until deadline: Instant
    ) -> (WaiterID, [Action])? {
        guard settings.leasedConnections > 0, hasRoom else { return nil }
        let ticket = leases.add(request, isLong: isLong, until: deadline)
        return (.lease(ticket), serveLeaseWaiters())
    }

    /// Ends a lease. A connection that is not `reusable` is closed.
    mutating func releaseLease(_ id: ConnectionID, reusable: Bool, now: Instant) -> [Action] {
        guard isCurrent(id), case .leased = slots[id.slot].phase else { return [] }
        guard reusable, !isShutDown, !failover.isOutdated(id.slot) else {
            // No longer counted as long: it only needs the time to close.
            slots[id.slot].phase = .leased(isLong: false)
            return [.close(id)]
        }
        slots[id.slot].phase = .idle(since: now)
        return serveLeaseWaiters()
    }

    /// Grants idle connections, and opens one for each remaining waiter.
    private mutating func serveLeaseWaiters() -> [Action] {
        if leases.count == 0 { return [] }
        var actions: [Action] = []
        for index in range(.leases) {
            guard case .idle = slots[index].phase, let next = leases.pop(longLeases: longLeaseCount) else { continue }
            slots[index].phase = .leased(isLong: next.isLong)
            actions.append(.grant(next.request, id(index)))
        }
        let opening = range(.leases).count { index in
            switch slots[index].phase {
            case .connecting, .waitingToConnect: true
            default: false
            }
        }
        var missing = leases.wantedConnections(longLeases: longLeaseCount) - opening
        for index in range(.leases) where missing > 0 {
            guard case .absent = slots[index].phase else { continue }
            actions.append(connect(index))
            missing -= 1
        }
        return actions
    }

    private var longLeaseCount: Int {
        range(.leases).count { if case .leased(isLong: true) = slots[$0].phase { true } else { false } }
    }
}

/// Probes for a takeover while connections to the current server are silent.
///
/// A silent server may be slow, frozen, or gone with its network. Only in the last two cases should its connections be
/// closed. A reply from another server as the primary distinguishes them.
extension PoolStateMachine {
    /// Opens the probe connection, unless it is open or was just now.
    mutating func probeOtherHost() -> Action? {
        let slot = range(.probe).lowerBound
        guard !isShutDown, case .absent = slots[slot].phase else { return nil }
        return connect(slot)
    }

    /// Retries immediately on all slots that wait to connect, because a server has replied.
    mutating func retryImmediately() -> [Action] {
        var actions: [Action] = []
        for index in 0..<range(.probe).lowerBound {
            guard case .waitingToConnect = slots[index].phase else { continue }
            slots[index].failures = 0
            if slots[index].lane == .leases {
                slots[index].phase = .absent
            } else {
                actions.append(connect(index))
            }
        }
        return actions + serveLeaseWaiters()
    }

    private mutating func probeEnded(failed: Bool, now: Instant) -> [Action] {
        let pauses = FailoverMonitor.probePauses
        let pause = failed ? pauses.afterFailure : pauses.afterSuccess
        slots[range(.probe).lowerBound].phase = .waitingToConnect(until: now + pause)
        return []
    }
}

/// Handles timers.
extension PoolStateMachine {
    /// Reconnects, rejects requests that have waited too long, and closes connections that were idle for too long.
    mutating func advance(to now: Instant) -> [Action] {
        var actions: [Action] = []
        for index in slots.indices {
            switch slots[index].phase {
            case .waitingToConnect(let until) where until <= now:
                slots[index].phase = .absent
                if slots[index].lane == .reads || slots[index].lane == .commits { actions.append(connect(index)) }
            case .idle(let since) where since + settings.leasedIdleTimeout <= now:
                // It is not granted again. The caller reports when it is closed.
                slots[index].phase = .leased(isLong: false)
                actions.append(.close(id(index)))
            default: break
            }
        }
        while let request = reads.expire(now: now) ?? writes.expire(now: now) ?? leases.expire(now: now) {
            actions.append(.refuse(request, retryAfter: retryDelay(now)))
        }
        return actions + tryCommits() + serveLeaseWaiters()
    }

    /// The time of the next ``advance(to:)``.
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
        if let deadline = reads.nextDeadline { consider(deadline) }
        if let deadline = writes.nextDeadline { consider(deadline) }
        if let deadline = leases.nextDeadline { consider(deadline) }
        return next
    }

    /// Returns a suitable delay for a rejected request: until the next attempt to connect, and at least a second.
    func retryDelay(_ now: Instant) -> Duration {
        var delay = Duration.seconds(1)
        if isReady { return delay }
        for slot in slots[..<range(.leases).lowerBound] {
            if case .waitingToConnect(let until) = slot.phase { delay = max(delay, until - now) }
        }
        return delay
    }
}
