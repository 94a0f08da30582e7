/// Groups of requests that write and may share a transaction. Requests that arrive during a commit are sent together
/// after it.
///
/// Requests that share a key use one connection, so that they never wait for each other's locks. All others use the
/// first free one. On a cluster a group has one request.
extension PoolStateMachine {
    /// The maximum number of requests in a group, and of the bytes that they send.
    static var groupLimit: Int { 16 }
    static var groupByteLimit: Int { 262_144 }

    /// Reserves an idle connection for a request to be sent alone; `nil` when it has to wait for a group.
    mutating func acquireAlone() -> ConnectionID? {
        if isShutDown || commitsAreClosed || !queues[Lane.commits.rawValue].isEmpty { return nil }
        guard queues[Self.anyGroupQueue].isEmpty,
            let index = range(.commits).first(where: { isIdle($0) && queues[groupQueue($0)].isEmpty })
        else { return nil }
        slots[index].phase = .ready(load: 1)
        return id(index)
    }

    /// Queues a request for the next group. If a connection is idle, call ``serveIdleCommits()`` afterwards.
    /// - Parameter number: The same for requests that share a key; `nil` for the only holder of a key.
    /// - Returns: `nil` when the queue is full, writes are rejected, or the pool is shut down.
    mutating func waitForGroup(
        _ request: Request, _ number: Int?, bytes: Int, until deadline: Instant
    ) -> WaiterID? {
        if commitsAreClosed { return nil }
        let queue = number.map { groupQueue(slot(for: $0)) } ?? Self.anyGroupQueue
        return enqueue(request, queue, until: deadline, bytes: bytes)
    }

    /// Grants each idle write connection to waiting requests.
    mutating func serveIdleCommits() -> [Action] {
        if commitsAreClosed || isShutDown { return [] }
        var actions: [Action] = []
        for index in range(.commits) where isIdle(index) { actions += serveCommits(index) }
        return actions
    }

    /// Serves waiters in order of arrival: a group, which needs an idle connection, or requests that go alone.
    mutating func serveCommits(_ index: Int) -> [Action] {
        if commitsAreClosed { return [] }
        var actions: [Action] = []
        while case .ready(let load) = slots[index].phase, !slots[index].hasGroup {
            let single = waiters.first(of: queues[Lane.commits.rawValue])?.number ?? .max
            if !slots[index].isStalled, let member = oldestMember(index), member.number < single {
                if load == 0 { actions.append(grantGroup(index)) }
                break
            }
            guard single < .max, let action = serveOneShared(.commits) else { break }
            actions.append(action)
        }
        return actions
    }

    /// Returns true if a waiter from before `number` needs this connection to be idle.
    func isKept(_ index: Int, from number: Int) -> Bool {
        guard slots[index].lane == .commits, let member = oldestMember(index) else { return false }
        return member.number < number
    }

    private mutating func grantGroup(_ index: Int) -> Action {
        var members: [Request] = []
        var bytes = 0
        while members.count < (isDistributed ? 1 : Self.groupLimit), let next = oldestMember(index),
            members.isEmpty || next.bytes <= Self.groupByteLimit - bytes
        {
            guard let waiter = waiters.popFirst(of: &queues[next.queue]) else { break }
            members.append(waiter.request)
            bytes += min(waiter.bytes, Self.groupByteLimit + 1)
        }
        slots[index].phase = .ready(load: members.count)
        if members.count == 1 { return .grant(members[0], id(index)) }
        slots[index].hasGroup = true
        return .grantTogether(members, id(index))
    }

    /// Returns the oldest waiter for a group of this connection, of any, or of one that is currently unusable.
    private func oldestMember(_ index: Int) -> (queue: Int, number: Int, bytes: Int)? {
        var oldest: (queue: Int, number: Int, bytes: Int)?
        func consider(_ queue: Int) {
            guard let first = waiters.first(of: queues[queue]), first.number < oldest?.number ?? .max else { return }
            oldest = (queue, first.number, first.bytes)
        }
        consider(Self.anyGroupQueue)
        for other in range(.commits) where other == index || !isUsable(other) { consider(groupQueue(other)) }
        return oldest
    }

    private static var anyGroupQueue: Int { 4 }

    private func groupQueue(_ slot: Int) -> Int { 5 + slot - settings.readConnections }

    /// Returns the connection for a key's requests, or the next one while that is unusable.
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
