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

/// Removes confirmed events of a queue. ``SettleQueue`` follows.
struct RemoveConfirmed: Statement {
    let key: EventQueueKey
    let numbers: [Int64]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.outgoing_events e
        WHERE \(EventQueueKey.holds("e", \.key)) AND e.number = ANY(\(\.numbers))
        """
}
