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
}

/// Finds due queues of a destination, the longest waiting first.
struct FindDueQueues: Statement {
    typealias Row = DueQueue

    let destinationID: DestinationID
    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT q.account_id, q.lane, q.due_at FROM saltern.event_queues q
        WHERE q.destination_id = \(\.destinationID) AND q.due_at IS NOT NULL AND q.due_at <= \(\.now)
            AND EXISTS (SELECT FROM saltern.destinations d
                WHERE d.destination_id = \(\.destinationID) AND d.disabled_at IS NULL)
        ORDER BY q.due_at LIMIT \(\.limit)
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

/// Leases a queue in the state that was read. Returns no row if another node was first.
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
                WHERE \(EventQueueKey.holds("e", \.lease.key)) AND e.parked_at IS NULL ORDER BY e.number LIMIT \(\.limit)
            ) c), 0)
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
            AND q.lease = \(\.lease.id) AND e.parked_at IS NULL
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
