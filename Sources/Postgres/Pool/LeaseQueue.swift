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
