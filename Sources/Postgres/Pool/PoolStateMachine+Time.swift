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
        for queue in queues.indices {
            while let waiter = waiters.first(of: queues[queue]), waiter.deadline <= now {
                _ = waiters.popFirst(of: &queues[queue])
                actions.append(.refuse(waiter.request, retryAfter: retryDelay(now)))
            }
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
        for queue in queues {
            if let waiter = waiters.first(of: queue) { consider(waiter.deadline) }
        }
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
