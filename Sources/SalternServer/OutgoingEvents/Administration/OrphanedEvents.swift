internal import Postgres

/// Removes the rows of a removed destination.
enum OrphanedEvents {
    /// The most accounts whose rows one step removes.
    private static let slice: Int64 = 500

    /// Removes some of them.
    /// - Returns: False if there were none.
    static func removeSome(
        of destination: DestinationID, from database: PostgresClient
    ) async throws(PostgresError) -> Bool {
        let accounts = try await database.execute(FindAccountsOfDestination(id: destination, limit: slice))
        if accounts.isEmpty { return false }
        _ = try await database.execute(
            RemoveEventsOfDestination(id: destination, accounts: accounts),
            RemoveQueuesOfDestination(id: destination, accounts: accounts))
        return true
    }
}

/// Finds some accounts that have rows of a destination. Parked events have no queue.
struct FindAccountsOfDestination: Statement {
    typealias Row = AccountID

    let id: DestinationID
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        (SELECT q.account_id FROM saltern.event_queues q WHERE q.destination_id = \(\.id) LIMIT \(\.limit))
        UNION
        (SELECT e.account_id FROM saltern.outgoing_events e WHERE e.destination_id = \(\.id) LIMIT \(\.limit))
        """
}

struct RemoveEventsOfDestination: Statement {
    let id: DestinationID
    let accounts: [AccountID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.outgoing_events e WHERE e.destination_id = \(\.id) AND e.account_id = ANY(\(\.accounts))
        """
}

struct RemoveQueuesOfDestination: Statement {
    let id: DestinationID
    let accounts: [AccountID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.event_queues q WHERE q.destination_id = \(\.id) AND q.account_id = ANY(\(\.accounts))
        """
}
