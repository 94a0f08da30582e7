extension PoolStateMachine {
    /// Queues for a dedicated connection. The grant may be among the actions.
    /// - Parameter isLong: True for a long lease. Long leases use at most half of the connections.
    /// - Returns: `nil` when the queue is full or the pool is shut down.
    mutating func waitForLease(
        _ request: Request, isLong: Bool = false, until deadline: Instant
    ) -> (WaiterID, [Action])? {
        guard settings.leasedConnections > 0 else { return nil }
        let queue = isLong ? Self.longQueue : Lane.leases.rawValue
        guard let id = enqueue(request, queue, until: deadline) else { return nil }
        return (id, serveLeaseWaiters())
    }

    /// Ends a lease. A connection that is not `reusable` is closed.
    mutating func releaseLease(_ id: ConnectionID, reusable: Bool, now: Instant) -> [Action] {
        guard isCurrent(id), case .leased = slots[id.slot].phase else { return [] }
        guard reusable, !isShutDown, !isOutdated(id.slot) else {
            // No longer counted as long: it only needs the time to close.
            slots[id.slot].phase = .leased(isLong: false)
            return [.close(id)]
        }
        slots[id.slot].phase = .idle(since: now)
        return serveLeaseWaiters()
    }

    /// Grants idle connections, and opens one for each remaining waiter.
    mutating func serveLeaseWaiters() -> [Action] {
        if queues[Lane.leases.rawValue].isEmpty && queues[Self.longQueue].isEmpty { return [] }
        var actions: [Action] = []
        for index in range(.leases) {
            guard case .idle = slots[index].phase, let queue = nextLeaseQueue(),
                let waiter = waiters.popFirst(of: &queues[queue])
            else { continue }
            slots[index].phase = .leased(isLong: queue == Self.longQueue)
            actions.append(.grant(waiter.request, id(index)))
        }
        let opening = range(.leases).count { index in
            switch slots[index].phase {
            case .connecting, .waitingToConnect: true
            default: false
            }
        }
        let long = min(queues[Self.longQueue].count, max(settings.longLeases - longLeaseCount, 0))
        var missing = queues[Lane.leases.rawValue].count + long - opening
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

    /// Returns the queue of the oldest waiter that may have a lease now.
    private func nextLeaseQueue() -> Int? {
        let short = waiters.first(of: queues[Lane.leases.rawValue])
        let long = longLeaseCount < settings.longLeases ? waiters.first(of: queues[Self.longQueue]) : nil
        guard let long else { return short == nil ? nil : Lane.leases.rawValue }
        guard let short else { return Self.longQueue }
        return short.number < long.number ? Lane.leases.rawValue : Self.longQueue
    }
}
