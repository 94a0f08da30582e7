/// Requests that write and may share a transaction: what comes while a connection commits goes out together when it has.
///
/// A key's requests go to one connection each time, so that they never wait for each other's locks.
extension PoolStateMachine {
    /// How many requests a group has at most, and how many bytes they send.
    static var groupLimit: Int { 16 }
    static var groupByteLimit: Int { 262_144 }

    /// A connection that does nothing, for a request to be sent alone; `nil` when it has to wait for a group.
    /// - Parameter number: The same for requests of the same key.
    mutating func acquireAlone(_ number: Int) -> ConnectionID? {
        let index = slot(for: number)
        guard isIdle(index), queues[groupQueue(index)].isEmpty, queues[Lane.commits.rawValue].isEmpty, !isShutDown,
            !commitsAreClosed
        else { return nil }
        slots[index].phase = .ready(load: 1)
        return id(index)
    }

    /// Queues for the next group; `nil` when the queue is full, writes are refused, or the pool is shut down. When the
    /// connection is idle, ``serveIdleCommits()`` has to be called.
    mutating func waitForGroup(
        _ request: Request, _ number: Int, bytes: Int, until deadline: Instant
    ) -> WaiterID? {
        if commitsAreClosed { return nil }
        return enqueue(request, groupQueue(slot(for: number)), until: deadline, bytes: bytes)
    }

    /// Gives every idle connection that commits something to do.
    mutating func serveIdleCommits() -> [Action] {
        if commitsAreClosed || isShutDown { return [] }
        var actions: [Action] = []
        for index in range(.commits) where isIdle(index) { actions += serveCommits(index) }
        return actions
    }

    /// Who has waited longest comes first: a group, when the connection is idle, or those who go alone.
    mutating func serveCommits(_ index: Int) -> [Action] {
        if commitsAreClosed { return [] }
        var actions: [Action] = []
        while case .ready(let load) = slots[index].phase, !slots[index].hasGroup {
            let single = waiters.first(of: queues[Lane.commits.rawValue])?.number
            let queue = load == 0 && !slots[index].isStalled ? oldestGroupQueue(index) : nil
            if let queue, waiters.first(of: queues[queue])?.number ?? 0 < single ?? .max {
                actions.append(grantGroup(index, from: queue))
                break
            }
            guard single != nil, let action = serveOneShared(.commits) else { break }
            actions.append(action)
        }
        return actions
    }

    private mutating func grantGroup(_ index: Int, from queue: Int) -> Action {
        var members: [Request] = []
        var bytes = 0
        while members.count < Self.groupLimit, let waiter = waiters.first(of: queues[queue]),
            members.isEmpty || waiter.bytes <= Self.groupByteLimit - bytes
        {
            _ = waiters.popFirst(of: &queues[queue])
            members.append(waiter.request)
            bytes += min(waiter.bytes, Self.groupByteLimit + 1)
        }
        slots[index].phase = .ready(load: members.count)
        if members.count == 1 { return .grant(members[0], id(index)) }
        slots[index].hasGroup = true
        return .grantTogether(members, id(index))
    }

    /// The connection's own queue, or that of one which is of no use at present; of those the one whose first has waited
    /// longest.
    private func oldestGroupQueue(_ index: Int) -> Int? {
        var oldest: (queue: Int, number: Int)?
        for other in range(.commits) where other == index || !isUsable(other) {
            let queue = groupQueue(other)
            guard let first = waiters.first(of: queues[queue]) else { continue }
            if first.number < oldest?.number ?? .max { oldest = (queue, first.number) }
        }
        return oldest?.queue
    }

    private func groupQueue(_ slot: Int) -> Int { 4 + slot - settings.readConnections }

    /// The connection for requests of a key, or the next one when that is of no use at present.
    private func slot(for number: Int) -> Int {
        let range = range(.commits)
        for offset in 0..<range.count {
            let index = range.lowerBound + (number & 0xFFFF + offset) % range.count
            if isUsable(index) { return index }
        }
        return range.lowerBound + (number & 0xFFFF) % range.count
    }

    private func isUsable(_ index: Int) -> Bool {
        if case .ready = slots[index].phase { return !slots[index].isStalled }
        return false
    }

    private func isIdle(_ index: Int) -> Bool {
        if case .ready(load: 0) = slots[index].phase { return !slots[index].isStalled }
        return false
    }
}
