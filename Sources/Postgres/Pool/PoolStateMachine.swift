/// Manages connections and the requests that wait for them.
///
/// There are three lanes. Statements that only read share the connections of the first lane. Single requests that write
/// share those of the second. Those of the third are opened when transactions need them, each for one holder at a time.
/// Requests queue per lane, so a full lane does not block another.
///
/// Pure: the caller passes the time in and executes the actions.
struct PoolStateMachine<Request> {
    typealias Instant = ContinuousClock.Instant

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

    /// A waiter's position.
    enum WaiterID {
        case read(RequestQueues<Request>.Ticket)
        case write(WriteBatcher<Request>.Ticket)
        case lease(LeaseQueue<Request>.Ticket)
    }

    private let settings: Settings
    private(set) var slots: PoolSlots
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
        slots = PoolSlots(
            reads: settings.readConnections, commits: settings.commitConnections, leases: settings.leasedConnections,
            backOff: settings.backOff, idleTimeout: settings.leasedIdleTimeout)
        failover = FailoverMonitor(slotCount: slots.count)
    }

    /// True if reads can be sent; without a lane for them, if writes can.
    var isReady: Bool { slots.isReady(settings.readConnections > 0 ? .reads : .commits) }

    /// True if the server is a cluster node.
    var isDistributed: Bool {
        get { writes.isDistributed }
        set { writes.isDistributed = newValue }
    }

    var waiterCount: Int { reads.count + writes.waiterCount + leases.count }

    /// Returns the number of requests that wait for a connection of `lane`.
    func waitingCount(_ lane: PoolLane) -> Int {
        switch lane {
        case .reads: reads.count
        case .commits: writes.waiterCount
        case .leases: leases.count
        case .probe: 0
        }
    }

    /// Opens the shared connections.
    mutating func start() -> [Action] { slots.shared.map { .connect(slots.connect($0)) } }

    // MARK: Shared use

    /// Reserves a place on the ready connection with the lowest load; `nil` when the caller has to queue.
    mutating func acquireShared(_ lane: PoolLane) -> ConnectionID? {
        guard lane == .reads ? reads.count == 0 : !writes.hasSingle, !isShutDown else { return nil }
        return reserveLeastLoaded(lane)
    }

    /// Reserves a place for the first waiter, or without one for a request that has just arrived.
    private mutating func reserveLeastLoaded(_ lane: PoolLane) -> ConnectionID? {
        if lane == .commits && commitsAreClosed { return nil }
        let best = slots.leastLoaded(lane, below: settings.pipelineDepth) { slot in
            !failover.isStalled(slot) && (lane == .reads || !writes.hasGroup(writer(slot)) && !isGroupNext(slot))
        }
        return best.map { slots.reserve($0) }
    }

    /// Queues for a shared connection; `nil` when the queue is full, writes are rejected, or the pool is shut down.
    mutating func waitForShared(_ request: Request, _ lane: PoolLane, until deadline: Instant) -> WaiterID? {
        guard hasRoom else { return nil }
        if lane == .reads { return .read(reads.add(request, to: 0, until: deadline)) }
        return commitsAreClosed ? nil : .write(writes.addSingle(request, until: deadline))
    }

    /// True if another request may wait.
    private var hasRoom: Bool { !isShutDown && waiterCount < settings.queueLimit }

    /// Handles the end of a request on a shared connection.
    mutating func releaseShared(_ id: ConnectionID) -> [Action] {
        guard slots.isCurrent(id) else { return [] }
        let isCommit = slots[id.slot].lane == .commits
        switch slots.release(id.slot) {
        case .ready(let load):
            if load == 0, isCommit { writes.end(on: writer(id.slot)) }
            if isShutDown { return load == 0 ? [.close(id)] : [] }
            return isCommit ? serveCommits(id.slot) : serveOneShared(.reads).map { [$0] } ?? []
        case .retiring(let load): return load == 0 ? [.close(id)] : []
        default: return []
        }
    }

    private mutating func serveOneShared(_ lane: PoolLane) -> Action? {
        guard lane == .reads ? reads.count > 0 : writes.hasSingle, let granted = reserveLeastLoaded(lane),
            let request = lane == .reads ? reads.popFirst(of: 0) : writes.popSingle()
        else { return nil }
        return .grant(request, granted)
    }

    private mutating func serveShared(_ lane: PoolLane) -> [Action] {
        var actions: [Action] = []
        while let action = serveOneShared(lane) { actions.append(action) }
        return actions
    }

    /// Stops new requests on a connection, because its server is no longer the primary. Pending ones finish.
    mutating func retire(_ id: ConnectionID) -> Action? {
        slots.isCurrent(id) && slots.retire(id.slot) ? .close(id) : nil
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
}

/// Handles commits that do not end.
extension PoolStateMachine {
    /// True if writes are rejected because a commit does not end.
    var commitsAreClosed: Bool { failover.commitsAreClosed }

    /// Handles a connection that is silent for too long during a commit.
    ///
    /// Writes are rejected until a commit ends. One connection keeps trying.
    mutating func stalled(_ id: ConnectionID, now: Instant) -> [Action] {
        guard slots.isCurrent(id), failover.stalled(id) else { return [] }
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
        if slots.isCurrent(id) { failover.received(id, isCommit: slots[id.slot].lane != .reads) }
    }

    /// Handles the end of an ``Action/testCommit(_:)``.
    mutating func commitTested(_ id: ConnectionID, hasCommitted: Bool) {
        failover.tested(id, hasCommitted: hasCommitted)
    }

    /// Starts a test commit on one idle connection, if one is needed.
    private mutating func tryCommits() -> [Action] {
        guard failover.needsTest, !isShutDown else { return [] }
        for index in slots.range(.commits) where isIdle(index) {
            let id = slots.reserve(index)
            failover.beginTest(id)
            return [.testCommit(id)]
        }
        return []
    }
}

/// The life of a connection: it opens, ends, is given up, and is opened again.
extension PoolStateMachine {
    /// Handles a connection that is open and set up.
    /// - Parameter epoch: The epoch in which it was found usable; nil for the current one.
    mutating func connected(_ id: ConnectionID, of epoch: Int? = nil, now: Instant) -> [Action] {
        guard slots.isCurrent(id), slots[id.slot].phase == .connecting else { return [] }
        if isShutDown { return [.close(id)] }
        failover.opened(id.slot, in: epoch)
        let lane = slots[id.slot].lane
        let isUsable = lane != .probe && !failover.isOutdated(id.slot)
        slots.opened(id.slot, isUsable: isUsable, now: now)
        if !isUsable { return [.close(id)] }
        if lane == .leases { return serveLeaseWaiters() }
        if lane == .reads { return serveShared(lane) }
        return commitsAreClosed ? tryCommits() : serveIdleCommits()
    }

    /// Handles a connection that has ended or could not be opened. Its pending requests are gone.
    /// - Parameters:
    ///   - isGivenUp: True if the server process may still be working, until ``backendIsGone(_:now:)``.
    ///   - jitter: From 0 to 1; spreads the attempts of many clients.
    mutating func ended(_ id: ConnectionID, now: Instant, jitter: Double, isGivenUp: Bool = false) -> [Action] {
        guard slots.isCurrent(id) else { return [] }
        let failed = slots.ended(id.slot)
        if slots[id.slot].lane == .commits { writes.end(on: writer(id.slot)) }
        failover.ended(id)
        if isShutDown { return finishIfEmpty() }
        if isGivenUp {
            slots.giveUp(id.slot)
            return keepOneReader(now) + tryCommits() + serveIdleCommits()
        }
        return replace(id.slot, failed: failed, now: now, jitter: jitter) + tryCommits() + serveIdleCommits()
    }

    private mutating func replace(_ index: Int, failed: Bool, now: Instant, jitter: Double) -> [Action] {
        if slots[index].lane == .probe { return probeEnded(failed: failed, now: now) }
        if !failed && slots[index].lane == .leases { return serveLeaseWaiters() }
        slots.backOff(index, now: now, jitter: jitter)
        return []
    }

    /// Handles the end of the server process behind the connection that `slot` had given up.
    mutating func backendIsGone(_ slot: Int, now: Instant) -> [Action] {
        slots.free(slot) ? replace(slot, failed: false, now: now, jitter: 0) : []
    }

    /// Keeps one connection that can check whether the others' server processes are gone.
    private mutating func keepOneReader(_ now: Instant) -> [Action] {
        let lane = slots.range(settings.readConnections > 0 ? .reads : .commits)
        guard let first = lane.first, lane.allSatisfy({ slots[$0].phase == .givenUp }) else { return [] }
        return [.connect(slots.connect(first))]
    }

    /// Rejects new and waiting requests, and closes each connection after its last request.
    mutating func shutDown() -> [Action] {
        if isShutDown { return [] }
        isShutDown = true
        var actions: [Action] = []
        while let request = reads.popAny() ?? writes.popAny() ?? leases.popAny() {
            actions.append(.refuse(request, retryAfter: .seconds(1)))
        }
        actions += slots.shutDown().map { .close($0) }
        return actions + finishIfEmpty()
    }

    private mutating func finishIfEmpty() -> [Action] {
        guard slots.areAbsent, !hasFinished else { return [] }
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
        return slots.indices.filter { failover.isOutdated($0) }.compactMap { retire(slots.id($0)) }
    }
}

/// Write connections, which requests use alone or as a group (``WriteBatcher``).
extension PoolStateMachine {
    /// Returns the index of a slot among the write connections.
    private func writer(_ slot: Int) -> Int { slot - settings.readConnections }

    /// Reserves an idle connection for a request to be sent alone; `nil` when it has to wait for a group.
    mutating func acquireAlone() -> ConnectionID? {
        if isShutDown || commitsAreClosed || writes.hasSingle { return nil }
        let unclaimed = slots.range(.commits).first { isIdle($0) && writes.isUnclaimed(writer($0)) }
        return unclaimed.map { slots.reserve($0) }
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
        for index in slots.range(.commits) where isIdle(index) { actions += serveCommits(index) }
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
        let id = slots.reserve(index, count: members.count)
        return members.count == 1 ? .grant(members[0], id) : .grantTogether(members, id)
    }

    private func isGroupNext(_ index: Int) -> Bool {
        writes.waiterCount > 0 && writes.isGroupNext(on: writer(index), unusable: unusableWriters)
    }

    /// The write connections that can be sent nothing now.
    private var unusableWriters: WriteBatcher<Request>.ConnectionSet {
        var unusable = WriteBatcher<Request>.ConnectionSet()
        for index in slots.range(.commits) {
            if case .ready = slots[index].phase, !failover.isStalled(index) { continue }
            unusable.insert(writer(index))
        }
        return unusable
    }

    private func isIdle(_ index: Int) -> Bool { slots.isUnused(index) && !failover.isStalled(index) }
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
        guard slots.isCurrent(id), case .leased = slots[id.slot].phase else { return [] }
        guard reusable, !isShutDown, !failover.isOutdated(id.slot) else {
            slots.close(id.slot)
            return [.close(id)]
        }
        slots.keep(id.slot, now: now)
        return serveLeaseWaiters()
    }

    /// Grants idle connections, and opens one for each remaining waiter.
    private mutating func serveLeaseWaiters() -> [Action] {
        if leases.count == 0 { return [] }
        var actions: [Action] = []
        for index in slots.range(.leases) {
            guard case .idle = slots[index].phase, let next = leases.pop(longLeases: slots.longLeaseCount) else {
                continue
            }
            actions.append(.grant(next.request, slots.lease(index, isLong: next.isLong)))
        }
        var missing = leases.wantedConnections(longLeases: slots.longLeaseCount) - slots.openingLeaseCount
        for index in slots.range(.leases) where missing > 0 && slots[index].phase == .absent {
            actions.append(.connect(slots.connect(index)))
            missing -= 1
        }
        return actions
    }
}

/// Probes for a takeover while connections to the current server are silent.
///
/// A silent server may be slow, frozen, or gone with its network. Only in the last two cases should its connections be
/// closed. A reply from another server as the primary distinguishes them.
extension PoolStateMachine {
    /// Opens the probe connection, unless it is open or was just now.
    mutating func probeOtherHost() -> Action? {
        guard !isShutDown, slots[slots.probe].phase == .absent else { return nil }
        return .connect(slots.connect(slots.probe))
    }

    /// Retries immediately on all slots that wait to connect, because a server has replied.
    mutating func retryImmediately() -> [Action] {
        slots.retryImmediately().map { .connect($0) } + serveLeaseWaiters()
    }

    private mutating func probeEnded(failed: Bool, now: Instant) -> [Action] {
        let pauses = FailoverMonitor.probePauses
        let pause = failed ? pauses.afterFailure : pauses.afterSuccess
        slots.wait(slots.probe, until: now + pause)
        return []
    }
}

/// Handles timers.
extension PoolStateMachine {
    /// Reconnects, rejects requests that have waited too long, and closes connections that were idle for too long.
    mutating func advance(to now: Instant) -> [Action] {
        var actions: [Action] = []
        for index in slots.indices {
            switch slots.advance(index, to: now) {
            case .none: break
            case .connect(let id): actions.append(.connect(id))
            case .close(let id): actions.append(.close(id))
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
        if let deadline = slots.nextDeadline { consider(deadline) }
        if let deadline = reads.nextDeadline { consider(deadline) }
        if let deadline = writes.nextDeadline { consider(deadline) }
        if let deadline = leases.nextDeadline { consider(deadline) }
        return next
    }

    /// Returns a suitable delay for a rejected request: until the next attempt to connect, and at least a second.
    func retryDelay(_ now: Instant) -> Duration {
        let shortest = Duration.seconds(1)
        guard !isReady, let attempt = slots.latestAttempt else { return shortest }
        return max(shortest, attempt - now)
    }
}
