/// Commits that do not end.
extension PoolStateMachine {
    /// A connection has said nothing for too long while it commits. Writes are refused until a commit ends; one goes
    /// on trying.
    mutating func stalled(_ id: ConnectionID, now: Instant) -> [Action] {
        guard isCurrent(id), !slots[id.slot].isStalled else { return [] }
        slots[id.slot].isStalled = true
        if probe == id { probe = nil }
        if slots[id.slot].lane == .reads { return [] }
        return closeCommits(now: now)
    }

    /// Refuses writes until a commit has ended; one connection tries.
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

    /// A connection that was silent has answered: its commit has ended.
    mutating func received(_ id: ConnectionID) {
        guard isCurrent(id), slots[id.slot].isStalled else { return }
        slots[id.slot].isStalled = false
        if slots[id.slot].lane != .reads { commitsAreClosed = false }
    }

    /// What was sent for ``Action/probe(_:)`` has ended.
    mutating func probed(_ id: ConnectionID, hasCommitted: Bool) {
        if probe == id { probe = nil }
        if hasCommitted { commitsAreClosed = false }
    }

    /// Has one connection try, unless one does. While all of them wait for their own commits, these are the attempt.
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
