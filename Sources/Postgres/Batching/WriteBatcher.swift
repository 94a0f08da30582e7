internal import EventLoop

/// Forms groups of requests that write and may share a transaction. Requests that arrive during a commit are sent
/// together after it.
///
/// Requests that share a key use one connection, so that they never wait for each other's locks. All others use the
/// first free one. On a cluster a group has one request.
///
/// Its owner numbers all waiters of the write connections in order of arrival. Pure: the pool passes in which
/// connections are usable, and grants the groups.
struct WriteBatcher<Request> {
    typealias Instant = ContinuousClock.Instant

    /// The maximum number of requests in a group, and of the bytes that they send.
    private static var memberLimit: Int { 16 }
    private static var byteLimit: Int { 262_144 }

    fileprivate struct Waiter {
        var request: Request
        var deadline: Instant
        var number: Int
        var bytes: Int
    }

    /// A waiter's position.
    struct Ticket {
        fileprivate let place: WaitingLists<Waiter>.Place
        fileprivate let list: Int
    }

    /// The next waiter for a connection.
    struct Candidate {
        /// Its number in the order of arrival.
        let number: Int
        fileprivate let bytes: Int
        fileprivate let list: Int
    }

    /// A group under construction.
    struct Group {
        fileprivate(set) var members: [Request] = []
        fileprivate var bytes = 0
    }

    /// True if the server is a cluster node, where writing requests share no transaction.
    var isDistributed = false
    private var waiters = WaitingLists<Waiter>()
    /// The waiters for any write connection, then those for each.
    private var lists: [WaitingLists<Waiter>.List]
    /// True for connections with a pending group. Nothing else is sent until its end is answered.
    private var hasGroup: [Bool]

    init(connectionCount: Int) {
        lists = Array(repeating: WaitingLists<Waiter>.List(), count: 1 + connectionCount)
        hasGroup = Array(repeating: false, count: connectionCount)
    }

    // MARK: Waiters

    var waiterCount: Int { waiters.count }

    /// Adds a waiter.
    /// - Parameters:
    ///   - connection: The index of the only write connection for it; nil for any.
    ///   - bytes: The number of bytes that it sends.
    ///   - number: Its number in the order of arrival.
    mutating func add(
        _ request: Request, for connection: Int?, bytes: Int, number: Int, until deadline: Instant
    ) -> Ticket {
        let list = connection.map { $0 + 1 } ?? 0
        let waiter = Waiter(request: request, deadline: deadline, number: number, bytes: bytes)
        return Ticket(place: waiters.append(waiter, to: &lists[list]), list: list)
    }

    /// Removes a waiter.
    /// - Returns: Its request, if it was still waiting.
    mutating func cancel(_ ticket: Ticket) -> Request? {
        waiters.remove(ticket.place, from: &lists[ticket.list])?.request
    }

    /// Removes and returns any waiter's request, for the end of all.
    mutating func popAny() -> Request? {
        for list in lists.indices {
            if let waiter = waiters.popFirst(of: &lists[list]) { return waiter.request }
        }
        return nil
    }

    /// Removes a waiter whose deadline has passed. Call it until it returns `nil`.
    mutating func expire(now: Instant) -> Request? {
        for list in lists.indices {
            if let waiter = waiters.first(of: lists[list]), waiter.deadline <= now {
                return waiters.popFirst(of: &lists[list])?.request
            }
        }
        return nil
    }

    /// The time of the next ``expire(now:)``.
    var nextDeadline: Instant? {
        var next: Instant?
        for list in lists {
            if let waiter = waiters.first(of: list) { next = min(next ?? waiter.deadline, waiter.deadline) }
        }
        return next
    }

    // MARK: Connections

    /// Returns true if no request waits for any connection, or for this one.
    func isUnclaimed(_ connection: Int) -> Bool { lists[0].isEmpty && lists[connection + 1].isEmpty }

    /// Returns the oldest waiter for a connection: one for any, for this one, or for one that is currently unusable.
    func oldest(for connection: Int, isUsable: (Int) -> Bool) -> Candidate? {
        if waiters.count == 0 { return nil }
        var oldest: Candidate?
        func consider(_ list: Int) {
            guard let first = waiters.first(of: lists[list]), first.number < oldest?.number ?? .max else { return }
            oldest = Candidate(number: first.number, bytes: first.bytes, list: list)
        }
        consider(0)
        for other in hasGroup.indices where other == connection || !isUsable(other) { consider(other + 1) }
        return oldest
    }

    /// Returns the connection for the requests of a key, or the next one while that is unusable.
    /// - Parameter number: The same for all requests of the key.
    func connection(for number: Int, isUsable: (Int) -> Bool) -> Int {
        let first = number & 0xFFFF
        for offset in 0..<hasGroup.count {
            let connection = (first + offset) % hasGroup.count
            if isUsable(connection) { return connection }
        }
        return first % hasGroup.count
    }

    // MARK: Groups

    /// Moves a waiter into a group.
    /// - Returns: False if the group is full, or it would become too large.
    mutating func move(_ candidate: Candidate, to group: inout Group) -> Bool {
        guard group.members.count < (isDistributed ? 1 : Self.memberLimit),
            group.members.isEmpty || candidate.bytes <= Self.byteLimit - group.bytes,
            let waiter = waiters.popFirst(of: &lists[candidate.list])
        else { return false }
        group.members.append(waiter.request)
        group.bytes += min(waiter.bytes, Self.byteLimit + 1)
        return true
    }

    /// Returns true if a group is pending on a connection.
    func hasGroup(_ connection: Int) -> Bool { hasGroup[connection] }

    /// Begins a group on a connection. A single request is none.
    mutating func begin(_ group: Group, on connection: Int) { hasGroup[connection] = group.members.count > 1 }

    /// Handles the end of the last request on a connection, or of the connection itself.
    mutating func end(on connection: Int) { hasGroup[connection] = false }
}

/// Forms groups for idle connections at the end of a loop iteration. By then, all requests that share a key have
/// arrived.
final class BatchFlush: IterationObserver {
    // The client owns it.
    private unowned let client: PostgresClient
    var isIterationEndRequested = false

    init(_ client: PostgresClient) { self.client = client }

    func iterationEnded() { client.perform(client.pool.serveIdleCommits()) }
}
