/// Who holds which key, who waits for one, and which keys had better keep away from shared connections.
///
/// A key is held by one request at a time; others of it wait in the order in which they came. When the turn of one has
/// come, those of its party that wait hold the key together with it: they are members of one group. So parties take
/// turns, and nobody waits for more than the groups of those who came before. Pure: the caller passes the time in and
/// tells those who wait.
struct KeyTable<Waiter> {
    typealias Instant = ContinuousClock.Instant

    /// Where a request of a key is to be sent.
    enum Route {
        case shared
        /// Likewise, in one group with others that hold it at the same time.
        case together
        /// A lock of the key held somebody up a short while ago: on a connection of its own nobody else waits for it.
        case lease
    }

    struct Settings {
        /// How many requests wait for one key before further ones are refused.
        var waitersPerKey = PostgresClient.waitersPerKey
        /// How many hold a key together.
        var holders = 16
        /// How many wait for keys in all.
        var waiters = 8_192
        /// How many keys are remembered to have been locked.
        var marks = 4_096
        /// For how long the first and the longest mark lasts; each further one lasts twice as long.
        var markDurations: ClosedRange<Duration> = .seconds(10)...(.seconds(300))
    }

    /// What came of asking for a key.
    enum Answer {
        case held(Route)
        /// Wait until ``release(_:now:)`` or ``expire(now:)`` names the waiter, or ``cancel(_:)`` it.
        case wait(Ticket)
        /// As many wait for this key as may.
        case queueFull
        /// Too many wait in all, or nobody was to wait.
        case refused
    }

    /// A place in the queue for a key.
    struct Ticket {
        fileprivate let key: RequestKey
        fileprivate let place: WaitingLists<Entry>.Place
    }

    fileprivate struct Entry {
        var waiter: Waiter
        var key: RequestKey
        var since: Instant
        var deadline: Instant
        /// Who may hold it together with him.
        var batchOwner: ObjectIdentifier?
    }

    private struct Holding {
        var count = 1
        var waiting = WaitingLists<Entry>.List()
    }

    private struct Mark {
        var until: Instant
        var duration: Duration
    }

    private let settings: Settings
    /// Every key that is held, and who waits for it.
    private var held: [RequestKey: Holding] = [:]
    private var waiting = WaitingLists<Entry>()
    /// In the order in which they began to wait, which is that of their deadlines; may name some who wait no more.
    private var deadlines = Queue<(deadline: Instant, ticket: Ticket)>()
    private var lastDeadline: Instant?
    private var marks: [RequestKey: Mark] = [:]
    private var served = PostgresStatistics.KeyWaitCounts()

    init(settings: Settings = Settings()) { self.settings = settings }

    /// How many keys are held.
    var heldCount: Int { held.count }

    /// How many requests wait.
    var waiterCount: Int { waiting.count }

    /// Who waits, and has waited.
    var keyWaits: PostgresStatistics.KeyWaitCounts {
        var keyWaits = served
        keyWaits.waiting = waiting.count
        return keyWaits
    }

    // MARK: Holding

    /// Holds `key` if nobody does; otherwise queues, unless `waiter` is `nil` or too many wait.
    /// - Parameter batchOwner: Requests of the same one may hold the key together.
    mutating func acquire(
        _ key: RequestKey, batchOwner: ObjectIdentifier? = nil, waiter: @autoclosure () -> Waiter?, now: Instant,
        deadline: Instant
    ) -> Answer {
        guard var holding = held[key] else {
            held[key] = Holding()
            return .held(route(of: key, now: now))
        }
        guard holding.waiting.count < settings.waitersPerKey else { return .queueFull }
        guard waiting.count < settings.waiters, let waiter = waiter() else { return .refused }
        // Never before that of somebody who came earlier, so that the first one is always the next to end.
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

    /// A holder of `key` is done with it.
    /// - Returns: Who holds it now, if anybody waited and nobody holds it any more.
    mutating func release(_ key: RequestKey, now: Instant) -> [(waiter: Waiter, route: Route)] {
        guard var holding = held[key] else { return [] }
        holding.count -= 1
        guard holding.count == 0, let first = waiting.popFirst(of: &holding.waiting) else {
            held[key] = holding.count == 0 ? nil : holding
            return []
        }
        var route = route(of: key, now: now)
        var next = [first]
        // On a connection of his own everybody would wait for the others.
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

    /// Somebody who waited has gone.
    /// - Returns: Who it was; `nil` when he does not wait any more.
    mutating func cancel(_ ticket: Ticket) -> Waiter? {
        guard waiting.element(at: ticket.place) != nil, var holding = held[ticket.key] else { return nil }
        let entry = waiting.remove(ticket.place, from: &holding.waiting)
        held[ticket.key] = holding
        return entry?.waiter
    }

    // MARK: Time

    /// Takes out one who has waited too long; to be called until it returns `nil`.
    mutating func expire(now: Instant) -> Waiter? {
        dropServedDeadlines()
        guard let first = deadlines.first, first.deadline <= now else { return nil }
        _ = deadlines.popFirst()
        return cancel(first.ticket)
    }

    /// When ``expire(now:)`` has something to do next.
    var nextDeadline: Instant? { deadlines.first?.deadline }

    private mutating func dropServedDeadlines() {
        while let first = deadlines.first, waiting.element(at: first.ticket.place) == nil { _ = deadlines.popFirst() }
    }

    // MARK: Marks

    /// A request of `key` met a lock on a shared connection.
    mutating func mark(_ key: RequestKey, now: Instant) {
        let (first, longest) = (settings.markDurations.lowerBound, settings.markDurations.upperBound)
        var duration = first
        if let mark = marks[key] {
            // Told again by those who were sent before the mark was made: that is no further lock.
            if now < mark.until { return }
            // Forgotten after as long a time without a lock as it lasted.
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
