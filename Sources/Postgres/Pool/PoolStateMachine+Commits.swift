/// Handles commits that do not end.
extension PoolStateMachine {
    /// Handles a connection that is silent for too long during a commit.
    ///
    /// Writes are rejected until a commit ends. One connection keeps trying.
    mutating func stalled(_ id: ConnectionID, now: Instant) -> [Action] {
        guard isCurrent(id), !slots[id.slot].isStalled else { return [] }
        slots[id.slot].isStalled = true
        if probe == id { probe = nil }
        if slots[id.slot].lane == .reads { return [] }
        return closeCommits(now: now)
    }

    /// Rejects writes until a commit has ended. One connection keeps trying.
    mutating func closeCommits(now: Instant) -> [Action] {
        if isShutDown { return [] }
        commitsAreClosed = true
        var actions: [Action] = []
        for queue in [Lane.commits.rawValue] + Array(4..<queues.count) {
            while let waiter = waiters.popFirst(of: &queues[queue]) {
                actions.append(.refuse(waiter.request, retryAfter: retryDelay(now)))
            }
        }
        return actions + tryCommits()
    }

    /// Handles a reply of a silent connection: its commit has ended.
    mutating func received(_ id: ConnectionID) {
        guard isCurrent(id), slots[id.slot].isStalled else { return }
        slots[id.slot].isStalled = false
        if slots[id.slot].lane != .reads { commitsAreClosed = false }
    }

    /// Handles the end of an ``Action/probe(_:)``.
    mutating func probed(_ id: ConnectionID, hasCommitted: Bool) {
        if probe == id { probe = nil }
        if hasCommitted { commitsAreClosed = false }
    }

    /// Starts a probe commit on one connection, unless one is running.
    ///
    /// While all connections wait for their own commits, those serve as the attempt.
    mutating func tryCommits() -> [Action] {
        guard commitsAreClosed, probe == nil, !isShutDown else { return [] }
        for index in range(.commits) {
            guard case .ready(load: 0) = slots[index].phase, !slots[index].isStalled else { continue }
            slots[index].phase = .ready(load: 1)
            probe = id(index)
            return [.probe(id(index))]
        }
        return []
    }
}
