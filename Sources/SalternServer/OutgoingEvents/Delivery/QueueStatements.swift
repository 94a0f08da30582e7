internal import Postgres

/// A queue that was due when it was read, without a lock.
struct DueQueue: Sendable, DecodableRow {
    let accountID: AccountID
    let lane: UUID
    let dueAt: Timestamp

    init(row: inout RowReader) throws(PostgresError) {
        accountID = try row.next()
        lane = try row.next()
        dueAt = try row.next()
    }

    init(accountID: AccountID, lane: UUID, dueAt: Timestamp) {
        self.accountID = accountID
        self.lane = lane
        self.dueAt = dueAt
    }
}

extension [DueQueue] {
    /// Removes and returns the first queue of each account that is not busy, at most `count`.
    mutating func take(_ count: Int, except busy: Set<AccountID>) -> [DueQueue] {
        var busy = busy
        var taken: [DueQueue] = []
        removeAll { queue in
            guard taken.count < count, busy.insert(queue.accountID).inserted else { return false }
            taken.append(queue)
            return true
        }
        return taken
    }
}

/// Finds due queues of a destination in turns of their accounts: the longest waiting queue of each account, then the
/// second ones. An account with many queues then hides no other.
///
/// It reads the longest waiting queues by the index `event_queues_by_due`, so its cost does not grow with the backlog.
/// A cluster reads as many of each shard. They belong to ``accountCount`` accounts at least if as many have a due
/// queue, because an account has at most ``EventLane/totalLimit``.
struct FindDueQueues: Statement {
    typealias Row = DueQueue

    let destinationID: DestinationID
    let now: Timestamp

    /// The most queues of one read. It is more than one account has.
    static let limit: Int64 = 64
    /// While ``DestinationRunner/concurrency`` accounts are busy, as many others can begin.
    static let accountCount = 2 * DestinationRunner.concurrency
    private static let window = Int64(accountCount * EventLane.totalLimit)

    private var latest: Timestamp { RetrySchedule.latestDue(at: now) }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT t.account_id, t.lane, t.due_at FROM (
            SELECT w.account_id, w.lane, w.due_at,
                row_number() OVER (PARTITION BY w.account_id ORDER BY w.due_at, w.lane) AS turn
            FROM ((
                SELECT q.account_id, q.lane, q.due_at FROM saltern.event_queues q
                WHERE q.destination_id = \(\.destinationID) AND q.due_at IS NOT NULL AND q.due_at <= \(\.now)
                    AND EXISTS (\(enabled))
                ORDER BY q.due_at LIMIT \(window)
            ) UNION ALL (
                SELECT q.account_id, q.lane, q.due_at FROM saltern.event_queues q
                WHERE q.destination_id = \(\.destinationID) AND q.due_at IS NOT NULL AND q.due_at > \(\.latest)
                    AND EXISTS (\(enabled))
                ORDER BY q.due_at LIMIT \(window)
            )) w
        ) t
        ORDER BY t.turn, t.due_at LIMIT \(limit)
        """
    private static let enabled: SQL<Self> = """
        SELECT FROM saltern.destinations d WHERE d.destination_id = \(\.destinationID) AND d.disabled_at IS NULL
        """
}

/// Finds the longest waiting due queue of an account without failed attempts. An open circuit breaker tests with it,
/// because the receiver may reject some accounts only.
///
/// It reads past all due queues of accounts with failures: 0.3 s with 200,000. A runner executes it once in
/// ``CircuitBreaker/firstPause`` at most.
struct FindTestQueue: Statement {
    typealias Row = DueQueue

    let destinationID: DestinationID
    let now: Timestamp
    /// Accounts with a delivery under way.
    let except: [AccountID]

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT q.account_id, q.lane, q.due_at FROM saltern.event_queues q
        JOIN saltern.destinations d ON d.destination_id = q.destination_id
        WHERE q.destination_id = \(\.destinationID) AND d.destination_id = \(\.destinationID) AND d.disabled_at IS NULL
            AND q.due_at IS NOT NULL AND q.due_at <= \(\.now) AND q.account_id <> ALL(\(\.except)::uuid[])
            AND NOT EXISTS (SELECT FROM saltern.event_queues f
                WHERE f.account_id = q.account_id AND f.destination_id = \(\.destinationID) AND f.attempts > 0)
        ORDER BY q.due_at LIMIT 1
        """
}

/// Reserves a queue. During a lease no other node or service delivers from it.
struct EventLease: Sendable {
    let key: EventQueueKey
    let id: UUID

    /// The time of a lease. An attempt takes at most ``WebhookRequest/timeLimit``, and each success extends the lease.
    static let duration = Duration.seconds(30)
    /// The most events of one lease, so that other queues are delivered too.
    static let eventLimit: Int64 = 16
    /// The time after which a lease begins no further attempt, so that other queues are delivered too.
    static let turn = Duration.seconds(15)
}

/// Locks a queue's row like its writers. The statements that follow then see all of its events.
struct LockQueue: Statement {
    typealias Row = UUID

    let key: EventQueueKey

    static let sql: SQL<Self> =
        "SELECT q.lane FROM saltern.event_queues q WHERE \(EventQueueKey.holds("q", \.key)) FOR UPDATE"
}

/// Leases a queue in the state that was read. Returns no row if another node was first. Follows ``LockQueue``.
struct LeaseQueue: Statement {
    let lease: EventLease
    let seen: Timestamp
    let until: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let lastNumber: Int64
        let attempts: Int32
    }

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q SET due_at = \(\.until), lease = \(\.lease.id), leased_number = coalesce((
            SELECT max(c.number) FROM (
                SELECT e.number FROM saltern.outgoing_events e
                WHERE \(EventQueueKey.holds("e", \.lease.key)) AND \(EventQueueKey.isWaiting)
                ORDER BY e.number LIMIT \(\.limit)
            ) c), q.leased_number)
        WHERE \(EventQueueKey.holds("q", \.lease.key)) AND q.due_at = \(\.seen)
        RETURNING q.last_number, q.attempts
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the events that a lease covers, in their order.
struct FindLeasedEvents: Statement {
    typealias Row = OutgoingEvent

    let lease: EventLease
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(OutgoingEvent.columns) FROM saltern.outgoing_events e JOIN saltern.event_queues q
            ON q.account_id = e.account_id AND q.destination_id = e.destination_id AND q.lane = e.lane
        WHERE \(EventQueueKey.holds("e", \.lease.key)) AND \(EventQueueKey.holds("q", \.lease.key))
            AND q.lease = \(\.lease.id) AND \(EventQueueKey.isWaiting)
        ORDER BY e.number LIMIT \(\.limit)
        """
}

/// Removes a delivered event.
struct RemoveDelivered: Statement {
    let key: EventQueueKey
    let number: Int64

    static let sql: SQL<Self> = """
        DELETE FROM saltern.outgoing_events e WHERE \(EventQueueKey.holds("e", \.key)) AND e.number = \(\.number)
        """
}

/// Extends a lease after a success. Returns no row if the lease has ended.
struct ExtendLease: Statement {
    typealias Row = Int64

    let lease: EventLease
    let until: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q SET due_at = \(\.until), attempts = 0
        WHERE \(EventQueueKey.holds("q", \.lease.key)) AND q.lease = \(\.lease.id)
        RETURNING q.last_number
        """
}

/// Ends a lease. ``RemoveEndedQueue`` follows.
struct EndLease: Statement {
    let lease: EventLease
    /// The last number without a waiting event. The queue is due again only if its counter is higher.
    let deliveredNumber: Int64
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q
        SET lease = NULL, due_at = CASE WHEN q.last_number > \(\.deliveredNumber) THEN \(\.now)::timestamptz END
        WHERE \(EventQueueKey.holds("q", \.lease.key)) AND q.lease = \(\.lease.id)
        """
}

/// Removes an empty queue that ends with its last event.
struct RemoveEndedQueue: Statement {
    let key: EventQueueKey

    static let sql: SQL<Self> = """
        DELETE FROM saltern.event_queues q WHERE \(EventQueueKey.holds("q", \.key)) AND q.ends AND q.due_at IS NULL
        """
}

/// Ends the lease of a queue when no event that it covers waits. The queue is due at once if it has further events, and
/// otherwise not due. Follows ``LockQueue``. ``RemoveEndedQueue`` follows.
struct SettleQueue: Statement {
    let key: EventQueueKey
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q
        SET lease = NULL, attempts = 0, due_at = CASE WHEN EXISTS (\(waiting)) THEN \(\.now)::timestamptz END
        WHERE \(EventQueueKey.holds("q", \.key)) AND NOT EXISTS (\(waiting) AND e.number <= q.leased_number)
        """
    private static let waiting: SQL<Self> = """
        SELECT FROM saltern.outgoing_events e WHERE \(EventQueueKey.holds("e", \.key)) AND \(EventQueueKey.isWaiting)
        """
}

/// Takes the count of an account's dropped events, with its row.
struct TakeDroppedEvents: Statement {
    typealias Row = Int64

    let key: EventQueueKey

    static let sql: SQL<Self> = """
        DELETE FROM saltern.event_queues q WHERE \(EventQueueKey.holds("q", \.key)) RETURNING q.last_number
        """
}

/// Ends a lease after a failure.
struct DelayQueue: Statement {
    let lease: EventLease
    let attempts: Int32
    let dueAt: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q SET lease = NULL, attempts = \(\.attempts), due_at = \(\.dueAt)
        WHERE \(EventQueueKey.holds("q", \.lease.key)) AND q.lease = \(\.lease.id)
        """
}

/// Parks an event whose time for attempts is over.
struct ParkEvent: Statement {
    let key: EventQueueKey
    let number: Int64
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.outgoing_events e SET parked_at = \(\.now)
        WHERE \(EventQueueKey.holds("e", \.key)) AND e.number = \(\.number)
        """
}
