public import Postgres

/// Counts the undelivered events of each destination for metrics.
public struct EventBacklog: Sendable {
    /// The most rows that are counted.
    public static let countLimit = 1_000

    /// The events of one destination.
    public struct Part: Sendable {
        public let destination: String
        /// At most ``EventBacklog/countLimit``.
        public let waiting: Int
        /// The age of the oldest waiting event.
        public let age: Duration
        /// At most ``EventBacklog/countLimit``.
        public let parked: Int
        public let isDisabled: Bool
    }

    public let parts: [Part]

    /// Reads a bounded number of rows for each destination.
    public static func read(_ database: PostgresClient, now: Timestamp) async throws -> EventBacklog {
        // A separate connection delays no request when the database is slow.
        try await database.withConnection { connection in
            var parts: [Part] = []
            for destination in try await connection.execute(FindDestinations()) {
                let waiting = try await connection.execute(
                    FindWaitingEvents(destinationID: destination.id, limit: Int64(countLimit)))
                let parked = try await connection.execute(
                    FindParkedEvents(destinationID: destination.id, limit: Int64(countLimit)))
                parts.append(
                    Part(
                        destination: destination.name.description, waiting: waiting.count,
                        age: waiting.first.map { max(now - $0, .zero) } ?? .zero, parked: parked.count,
                        isDisabled: destination.isDisabled))
            }
            return EventBacklog(parts: parts)
        }
    }
}

/// Finds the times since which events of a destination wait, oldest first, by the index `outgoing_events_by_age`.
struct FindWaitingEvents: Statement {
    typealias Row = Timestamp

    let destinationID: DestinationID
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.waiting_since FROM saltern.outgoing_events e
        WHERE e.destination_id = \(\.destinationID) AND e.parked_at IS NULL ORDER BY e.waiting_since LIMIT \(\.limit)
        """
}

/// Finds the times at which events of a destination were parked, oldest first, by the index
/// `outgoing_events_by_parking`.
struct FindParkedEvents: Statement {
    typealias Row = Timestamp

    let destinationID: DestinationID
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.parked_at FROM saltern.outgoing_events e
        WHERE e.destination_id = \(\.destinationID) AND e.parked_at IS NOT NULL ORDER BY e.parked_at LIMIT \(\.limit)
        """
}
