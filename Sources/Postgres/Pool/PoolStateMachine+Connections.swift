/// The life of a connection: it opens, ends, is given up, and is opened again.
extension PoolStateMachine {
    /// Handles a connection that is open and set up.
    /// - Parameter epoch: The generation in which it was found usable; nil for the current one.
    mutating func connected(_ id: ConnectionID, of epoch: Int? = nil, now: Instant) -> [Action] {
        guard isCurrent(id), case .connecting = slots[id.slot].phase else { return [] }
        slots[id.slot].failures = 0
        if isShutDown { return [.close(id)] }
        slots[id.slot].epoch = epoch ?? self.epoch
        let lane = slots[id.slot].lane
        if lane == .probe || isOutdated(id.slot) {
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
        slots[id.slot].isStalled = false
        slots[id.slot].hasGroup = false
        if probe == id { probe = nil }
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
        for queue in queues.indices {
            while let waiter = waiters.popFirst(of: &queues[queue]) {
                actions.append(.refuse(waiter.request, retryAfter: .seconds(1)))
            }
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
