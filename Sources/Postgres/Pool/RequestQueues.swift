/// Queues of requests that wait until a deadline, numbered in order of arrival.
///
/// Pure: the caller passes the time in. The queues are numbered from 0.
struct RequestQueues<Request> {
    typealias Instant = ContinuousClock.Instant

    fileprivate struct Waiter {
        var request: Request
        var deadline: Instant
        var number: Int
        var bytes: Int
    }

    /// A request's position.
    struct Ticket {
        fileprivate let place: WaitingLists<Waiter>.Place
        fileprivate let queue: Int
    }

    private var waiters = WaitingLists<Waiter>()
    private var queues: [WaitingLists<Waiter>.List]
    private var lastNumber = 0

    init(count: Int) { queues = Array(repeating: WaitingLists<Waiter>.List(), count: count) }

    /// The number of requests in all queues.
    var count: Int { waiters.count }

    func count(of queue: Int) -> Int { queues[queue].count }

    /// Adds a request.
    /// - Parameter bytes: The number of bytes that it sends, where that matters.
    mutating func add(_ request: Request, to queue: Int, bytes: Int = 0, until deadline: Instant) -> Ticket {
        lastNumber += 1
        let waiter = Waiter(request: request, deadline: deadline, number: lastNumber, bytes: bytes)
        return Ticket(place: waiters.append(waiter, to: &queues[queue]), queue: queue)
    }

    /// Returns the first request's number in the order of arrival, and its bytes.
    func first(of queue: Int) -> (number: Int, bytes: Int)? {
        guard let waiter = waiters.first(of: queues[queue]) else { return nil }
        return (waiter.number, waiter.bytes)
    }

    mutating func popFirst(of queue: Int) -> Request? { waiters.popFirst(of: &queues[queue])?.request }

    /// Removes a request.
    /// - Returns: The request, if it was still waiting.
    mutating func cancel(_ ticket: Ticket) -> Request? {
        waiters.remove(ticket.place, from: &queues[ticket.queue])?.request
    }

    /// Removes and returns the first request of any queue, for the end of all.
    mutating func popAny() -> Request? {
        for queue in queues.indices {
            if let request = popFirst(of: queue) { return request }
        }
        return nil
    }

    /// Removes a request after its deadline. Call it until it returns `nil`.
    mutating func expire(now: Instant) -> Request? {
        for queue in queues.indices {
            if let waiter = waiters.first(of: queues[queue]), waiter.deadline <= now { return popFirst(of: queue) }
        }
        return nil
    }

    /// The time of the next ``expire(now:)``.
    var nextDeadline: Instant? {
        var next: Instant?
        for queue in queues {
            if let waiter = waiters.first(of: queue) { next = min(next ?? waiter.deadline, waiter.deadline) }
        }
        return next
    }
}

/// Requests that wait for a dedicated connection, for a short or a long lease.
///
/// They are served in order of arrival. Long leases have a limit, and waiting ones do not delay short ones.
struct LeaseQueue<Request> {
    typealias Instant = ContinuousClock.Instant
    typealias Ticket = RequestQueues<Request>.Ticket

    private static var short: Int { 0 }
    private static var long: Int { 1 }

    /// The maximum number of long leases.
    private let longLimit: Int
    private var waiters = RequestQueues<Request>(count: 2)

    init(longLimit: Int) { self.longLimit = longLimit }

    var count: Int { waiters.count }

    mutating func add(_ request: Request, isLong: Bool, until deadline: Instant) -> Ticket {
        waiters.add(request, to: isLong ? Self.long : Self.short, until: deadline)
    }

    /// Removes and returns the oldest request that may have a lease now.
    /// - Parameter longLeases: The current number of long leases.
    mutating func pop(longLeases: Int) -> (request: Request, isLong: Bool)? {
        let short = waiters.first(of: Self.short)?.number ?? .max
        let long = longLeases < longLimit ? waiters.first(of: Self.long)?.number ?? .max : .max
        return waiters.popFirst(of: long < short ? Self.long : Self.short).map { ($0, long < short) }
    }

    /// Returns the number of connections that the waiting requests could use now.
    func wantedConnections(longLeases: Int) -> Int {
        waiters.count(of: Self.short) + min(waiters.count(of: Self.long), max(longLimit - longLeases, 0))
    }

    mutating func cancel(_ ticket: Ticket) -> Request? { waiters.cancel(ticket) }

    mutating func popAny() -> Request? { waiters.popAny() }

    mutating func expire(now: Instant) -> Request? { waiters.expire(now: now) }

    var nextDeadline: Instant? { waiters.nextDeadline }
}
