/// Tracks holders of keys, waiters, and keys that should avoid shared connections.
///
/// One request holds a key at a time, and others queue in order of arrival. When a request gets the key, waiters with
/// the same `batchOwner` get it as well: they become members of one group. So a waiter waits at most for the groups of
/// earlier arrivals.
///
/// The senders of one key are served round robin. So the first waiting request of a sender waits for the holders, and
/// for at most two requests of each other sender.
///
/// Pure: the caller passes the time in and notifies the waiters.
struct KeyTable<Waiter> {
    typealias Instant = ContinuousClock.Instant

    /// The kind of connection for a key's request.
    enum Route {
        case shared
        /// A shared connection, in one group with the other holders.
        case together
        /// A dedicated connection. A lock of the key blocked a shared one recently.
        case lease
    }

    struct Settings {
        /// The maximum number of requests that wait for one key.
        var waitersPerKey = PostgresClient.waitersPerKey
        /// The maximum number of simultaneous holders of a key.
        var holders = 16
        /// The maximum number of requests that wait for keys in all.
        var waiters = 8_192
        /// The maximum number of marked keys.
        var marks = 4_096
        /// The durations of the first and the longest mark. Each further mark lasts twice as long.
        var markDurations: ClosedRange<Duration> = .seconds(10)...(.seconds(300))
    }

    /// The result of a request for a key.
    enum Answer {
        case held(Route)
        /// Queued. ``release(_:now:)`` or ``expire(now:)`` will return the waiter; ``cancel(_:)`` removes it.
        case wait(Ticket)
        /// The key's queue is full.
        case queueFull
        /// Too many requests wait in all, or there is no waiter.
        case refused
    }

    /// A position in the queue for a key.
    struct Ticket {
        fileprivate let key: RequestKey
        fileprivate let place: WaitingLists<Entry>.Place
    }

    fileprivate struct Entry {
        var waiter: Waiter
        var key: RequestKey
        var since: Instant
        var deadline: Instant
        /// Waiters with the same value may hold the key together.
        var batchOwner: ObjectIdentifier?
    }

    private struct Holding {
        var count = 1
        var waiting = WaitingLists<Entry>.List()
        /// The senders that have been served in the current round.
        var served: Set<UUID> = []
    }

    private struct Mark {
        var until: Instant
        var duration: Duration
    }

    private let settings: Settings
    /// Every held key with its queue.
    private var held: [RequestKey: Holding] = [:]
    private var waiting = WaitingLists<Entry>()
    /// Waiters in order of arrival, which is that of their deadlines. Some may have left.
    private var deadlines = Queue<(deadline: Instant, ticket: Ticket)>()
    private var lastDeadline: Instant?
    private var marks: [RequestKey: Mark] = [:]
    private var served = PostgresStatistics.KeyWaitCounts()

    init(settings: Settings = Settings()) { self.settings = settings }

    var heldCount: Int { held.count }

    var waiterCount: Int { waiting.count }

    /// The counts of waiting and served requests.
    var keyWaits: PostgresStatistics.KeyWaitCounts {
        var keyWaits = served
        keyWaits.waiting = waiting.count
        return keyWaits
    }

    // MARK: Holding

    /// Acquires `key` if it is free. Otherwise queues, unless `waiter` is `nil` or too many wait.
    /// - Parameter batchOwner: Requests with the same value may hold the key together.
    mutating func acquire(
        _ key: RequestKey, batchOwner: ObjectIdentifier? = nil, waiter: @autoclosure () -> Waiter?, now: Instant,
        deadline: Instant
    ) -> Answer {
        guard var holding = held[key] else {
            var holding = Holding()
            if let sender = key.sender { holding.served.insert(sender) }
            held[key] = holding
            return .held(route(of: key, now: now))
        }
        guard holding.waiting.count < settings.waitersPerKey else { return .queueFull }
        guard waiting.count < settings.waiters, let waiter = waiter() else { return .refused }
        // Never before an earlier waiter's deadline, so that the first one always expires next.
        let deadline = max(deadline, lastDeadline ?? deadline)
        lastDeadline = deadline
        let place = waiting.append(
            Entry(waiter: waiter, key: key, since: now, deadline: deadline, batchOwner: batchOwner),
            to: &holding.waiting)
        held[key] = holding
        let ticket = Ticket(key: key, place: place)
        dropServedDeadlines()
        deadlines.append((deadline, ticket))
        return .wait(ticket)
    }

    /// Releases `key` for one holder.
    /// - Returns: The next holders, if this was the last one and requests wait.
    mutating func release(_ key: RequestKey, now: Instant) -> [(waiter: Waiter, route: Route)] {
        guard var holding = held[key] else { return [] }
        holding.count -= 1
        guard holding.count == 0, let first = popNext(of: &holding) else {
            held[key] = holding.count == 0 ? nil : holding
            return []
        }
        var route = route(of: key, now: now)
        var next = [first]
        // On a dedicated connection, each would wait for the others.
        if case .shared = route, let batchOwner = first.batchOwner {
            while next.count < settings.holders,
                let entry = waiting.popFirst(of: &holding.waiting, where: { $0.batchOwner == batchOwner })
            {
                next.append(entry)
            }
        }
        if next.count > 1 { route = .together }
        served.waits += next.count
        for entry in next { served.waited += now - entry.since }
        holding.count = next.count
        held[key] = holding
        return next.map { ($0.waiter, route) }
    }

    /// Removes and returns the first request of a sender that was not served in the current round, or begins a round.
    private mutating func popNext(of holding: inout Holding) -> Entry? {
        if holding.waiting.isEmpty { return nil }
        let served = holding.served
        let isFirst = { (entry: Entry) in entry.key.sender.map { !served.contains($0) } ?? true }
        var next = waiting.popFirst(of: &holding.waiting, where: isFirst)
        if next == nil {
            holding.served.removeAll(keepingCapacity: true)
            next = waiting.popFirst(of: &holding.waiting)
        }
        if let sender = next?.key.sender { holding.served.insert(sender) }
        return next
    }

    /// Removes a waiter.
    /// - Returns: The waiter; `nil` if it no longer waits.
    mutating func cancel(_ ticket: Ticket) -> Waiter? {
        guard waiting.element(at: ticket.place) != nil, var holding = held[ticket.key] else { return nil }
        let entry = waiting.remove(ticket.place, from: &holding.waiting)
        held[ticket.key] = holding
        return entry?.waiter
    }

    // MARK: Time

    /// Removes a waiter whose deadline has passed. Call it until it returns `nil`.
    mutating func expire(now: Instant) -> Waiter? {
        dropServedDeadlines()
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        _ = deadlines.popFirst()
        return cancel(first.ticket)
    }

    /// The time of the next ``expire(now:)``.
    var nextDeadline: Instant? { deadlines.first?.deadline }

    private mutating func dropServedDeadlines() {
        while let first = deadlines.first, waiting.element(at: first.ticket.place) == nil { _ = deadlines.popFirst() }
    }

    // MARK: Marks

    /// Marks `key`, after its request met a lock on a shared connection.
    mutating func mark(_ key: RequestKey, now: Instant) {
        let (first, longest) = (settings.markDurations.lowerBound, settings.markDurations.upperBound)
        var duration = first
        if let mark = marks[key] {
            // Requests sent before the mark report the same lock.
            if now < mark.until { return }
            // A mark is forgotten after as long without a lock as it lasted.
            if now < mark.until + mark.duration { duration = min(mark.duration * 2, longest) }
        } else if marks.count >= settings.marks {
            makeRoom(now: now)
        }
        marks[key] = Mark(until: now + duration, duration: duration)
    }

    private mutating func makeRoom(now: Instant) {
        marks = marks.filter { now < $0.value.until + $0.value.duration }
        if marks.count < settings.marks { return }
        if let soonest = marks.min(by: { $0.value.until < $1.value.until }) { marks[soonest.key] = nil }
    }

    private func route(of key: RequestKey, now: Instant) -> Route {
        if marks.isEmpty { return .shared }
        guard let mark = marks[key], now < mark.until else { return .shared }
        return .lease
    }
}
