public import Postgres

/// Lists, retries and drops undelivered events for an operator.
public struct EventAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// An event that waits or is parked.
    public struct Entry: Sendable {
        public let id: EventID
        public let destination: String
        public let accountID: AccountID
        public let kind: String
        public let occurredAt: Timestamp
        public let attempts: Int
        /// The time of the next attempt of its queue.
        public let dueAt: Timestamp?
        public let parkedAt: Timestamp?
    }

    /// The selection of a command.
    public struct Selection: Sendable {
        public var destination: DestinationID?
        public var id: EventID?
        /// Only parked events.
        public var isParked: Bool

        public init(destination: DestinationID? = nil, id: EventID? = nil, isParked: Bool = false) {
            self.destination = destination
            self.id = id
            self.isParked = isParked
        }
    }

    /// Returns events, oldest first.
    public func events(_ selection: Selection, limit: Int) async throws(PostgresError) -> [Entry] {
        try await database.execute(FindUndelivered(selection: selection, limit: Int64(limit)))
    }

    /// The number of events in a step of ``retry(_:now:)`` and ``drop(_:now:)``.
    private static let slice = 500

    /// Attempts events again at once, including parked ones.
    /// - Returns: The number of events.
    public func retry(_ selection: Selection, now: Timestamp) async throws -> Int {
        try await forEach(selection) { keys in
            for key in keys {
                _ = try await database.execute(
                    WakeQueue(key: key.queue, now: now), UnparkEvent(key: key.queue, number: key.number, now: now))
            }
        }
    }

    /// Removes events. The next event of their account is attempted at once.
    /// - Returns: The number of events.
    public func drop(_ selection: Selection, now: Timestamp) async throws -> Int {
        try await forEach(selection) { keys in
            for key in keys {
                _ = try await database.execute(
                    LockQueue(key: key.queue), RemoveDelivered(key: key.queue, number: key.number),
                    SettleQueue(key: key.queue, now: now), RemoveEndedQueue(key: key.queue))
            }
        }
    }

    /// Runs `body` for slices of the selected events, in the order of their keys.
    private func forEach(_ selection: Selection, _ body: ([EventKey]) async throws -> Void) async throws -> Int {
        var (count, last) = (0, EventKey.first)
        while true {
            let keys = try await database.execute(
                FindEventKeys(selection: selection, after: last, limit: Int64(Self.slice)))
            try await body(keys)
            count += keys.count
            guard keys.count == Self.slice, let next = keys.last else { return count }
            last = next
        }
    }
}
