internal import Postgres

/// Finds events of a destination by their public identifiers.
struct FindEventsByID: Statement {
    let destinationID: DestinationID
    let ids: [UUID]

    struct Row: Sendable {
        let accountID: AccountID
        let lane: UUID
        let number: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id, e.lane, e.number FROM saltern.outgoing_events e
        WHERE e.destination_id = \(\.destinationID) AND e.event_id = ANY(\(\.ids))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Locks a queue's row like its writers, before its events are removed.
struct LockQueue: Statement {
    typealias Row = UUID

    let key: EventQueueKey

    static let sql: SQL<Self> =
        "SELECT q.lane FROM saltern.event_queues q WHERE \(EventQueueKey.holds("q", \.key)) FOR UPDATE"
}

/// Removes confirmed events of a queue. ``SettleConfirmed`` follows.
struct RemoveConfirmed: Statement {
    let key: EventQueueKey
    let numbers: [Int64]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.outgoing_events e
        WHERE \(EventQueueKey.holds("e", \.key)) AND e.number = ANY(\(\.numbers))
        """
}

/// Ends the lease of a queue when all its leased events are confirmed. The queue is due at once if it has further
/// events, and otherwise not due. ``RemoveEndedQueue`` follows.
struct SettleConfirmed: Statement {
    let key: EventQueueKey
    let highest: Int64
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q
        SET lease = NULL, attempts = 0, due_at = CASE WHEN q.last_number > \(\.highest) THEN \(\.now)::timestamptz END
        WHERE \(EventQueueKey.holds("q", \.key)) AND q.leased_number <= \(\.highest) AND NOT EXISTS (
            SELECT FROM saltern.outgoing_events e
            WHERE \(EventQueueKey.holds("e", \.key)) AND e.number <= \(\.highest) AND e.parked_at IS NULL)
        """
}
