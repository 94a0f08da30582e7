/// Forms groups of requests that write and may share a transaction. Requests that arrive during a commit are sent
/// together after it.
///
/// Requests that share a key use one connection, so that they never wait for each other's locks. All others use the
/// first free one. On a cluster a group has one request.
///
/// Single requests, which share no transaction, wait here as well: both kinds are served in order of arrival.
///
/// Pure: the pool reserves connections, and passes in the currently unusable ones. Connections are numbered from 0.
struct WriteBatcher<Request> {
    typealias Instant = ContinuousClock.Instant
    typealias Ticket = RequestQueues<Request>.Ticket

    /// A set of connections, a bit each.
    struct ConnectionSet {
        private var bits: UInt64 = 0

        init(_ connections: some Sequence<Int> = []) {
            for connection in connections { insert(connection) }
        }

        mutating func insert(_ connection: Int) { bits |= 1 << connection }

        func contains(_ connection: Int) -> Bool { bits & (1 << connection) != 0 }
    }

    /// The maximum number of requests in a group, and of the bytes that they send.
    private static var memberLimit: Int { 16 }
    private static var byteLimit: Int { 262_144 }

    private static var singles: Int { 0 }
    private static var membersForAny: Int { 1 }
    private static func members(for connection: Int) -> Int { 2 + connection }

    /// True if the server is a cluster node, where writing requests share no transaction.
    var isDistributed = false
    private var waiters: RequestQueues<Request>
    /// True for connections with a pending group. Nothing else is sent until its end is answered.
    private var hasGroup: [Bool]

    /// - Precondition: There are at most 64 connections.
    init(connectionCount: Int) {
        precondition(connectionCount <= UInt64.bitWidth, "a ConnectionSet has a bit for each")
        waiters = RequestQueues(count: 2 + connectionCount)
        hasGroup = Array(repeating: false, count: connectionCount)
    }

    // MARK: Waiters

    var waiterCount: Int { waiters.count }

    /// True if a single request waits.
    var hasSingle: Bool { waiters.count(of: Self.singles) > 0 }

    mutating func addSingle(_ request: Request, until deadline: Instant) -> Ticket {
        waiters.add(request, to: Self.singles, until: deadline)
    }

    /// Adds a request for the next group.
    /// - Parameters:
    ///   - key: The same number for requests that share a key; nil for the only holder of a key.
    ///   - bytes: The number of bytes that it sends. More than a group's limit keeps it alone.
    mutating func addMember(
        _ request: Request, key: Int?, bytes: Int, until deadline: Instant, unusable: ConnectionSet
    ) -> Ticket {
        let queue = key.map { Self.members(for: connection(for: $0, unusable: unusable)) } ?? Self.membersForAny
        return waiters.add(request, to: queue, bytes: bytes, until: deadline)
    }

    /// Returns the connection for the requests of a key, or the next one while that is unusable.
    private func connection(for key: Int, unusable: ConnectionSet) -> Int {
        let first = key & 0xFFFF
        for offset in 0..<hasGroup.count {
            let connection = (first + offset) % hasGroup.count
            if !unusable.contains(connection) { return connection }
        }
        return first % hasGroup.count
    }

    /// Removes and returns the first single request.
    mutating func popSingle() -> Request? { waiters.popFirst(of: Self.singles) }

    mutating func cancel(_ ticket: Ticket) -> Request? { waiters.cancel(ticket) }

    mutating func popAny() -> Request? { waiters.popAny() }

    mutating func expire(now: Instant) -> Request? { waiters.expire(now: now) }

    var nextDeadline: Instant? { waiters.nextDeadline }

    // MARK: Groups

    /// Returns true if no request waits for a group on this connection or on any.
    func isUnclaimed(_ connection: Int) -> Bool {
        waiters.count(of: Self.membersForAny) == 0 && waiters.count(of: Self.members(for: connection)) == 0
    }

    /// Returns true if the next waiter for this connection joins a group, which needs the connection to be idle.
    func isGroupNext(on connection: Int, unusable: ConnectionSet) -> Bool {
        guard let member = oldestMember(for: connection, unusable) else { return false }
        return member.number < waiters.first(of: Self.singles)?.number ?? .max
    }

    /// Begins a group on an idle connection: removes its members, oldest first. A single member is no group.
    mutating func beginGroup(on connection: Int, unusable: ConnectionSet) -> [Request] {
        var members: [Request] = []
        var bytes = 0
        while members.count < (isDistributed ? 1 : Self.memberLimit),
            let next = oldestMember(for: connection, unusable), members.isEmpty || next.bytes <= Self.byteLimit - bytes,
            let request = waiters.popFirst(of: next.queue)
        {
            members.append(request)
            bytes += min(next.bytes, Self.byteLimit + 1)
        }
        hasGroup[connection] = members.count > 1
        return members
    }

    /// Returns the oldest waiter for a group: on any connection, on this one, or on one that is unusable.
    private func oldestMember(
        for connection: Int, _ unusable: ConnectionSet
    ) -> (queue: Int, number: Int, bytes: Int)? {
        if waiters.count == 0 { return nil }
        var oldest: (queue: Int, number: Int, bytes: Int)?
        if let first = waiters.first(of: Self.membersForAny) {
            oldest = (Self.membersForAny, first.number, first.bytes)
        }
        for other in hasGroup.indices where other == connection || unusable.contains(other) {
            let queue = Self.members(for: other)
            guard let first = waiters.first(of: queue), first.number < oldest?.number ?? .max else { continue }
            oldest = (queue, first.number, first.bytes)
        }
        return oldest
    }

    /// Returns true if a group is pending on a connection.
    func hasGroup(_ connection: Int) -> Bool { hasGroup[connection] }

    /// Handles the end of the last request on a connection, or of the connection itself.
    mutating func end(on connection: Int) { hasGroup[connection] = false }
}
