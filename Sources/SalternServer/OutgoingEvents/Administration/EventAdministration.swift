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

    /// The number of events in a step of ``retry(_:by:)`` and ``drop(_:by:)``.
    private static let slice = 500

    /// Returns the number of selected events.
    public func count(_ selection: Selection) async throws -> Int { try await forEach(selection) { _ in } }

    /// Attempts events again at once, including parked ones.
    /// - Returns: The number of events.
    public func retry(_ selection: Selection, by signature: AuditSignature) async throws -> Int {
        try await forEach(selection, recording: act(.eventsRetried, selection, signature)) { keys in
            for key in keys {
                _ = try await database.execute(
                    WakeQueue(key: key.queue, now: signature.now),
                    UnparkEvent(key: key.queue, number: key.number, now: signature.now))
            }
        }
    }

    /// Removes events. The next event of their account is attempted at once.
    /// - Returns: The number of events.
    public func drop(_ selection: Selection, by signature: AuditSignature) async throws -> Int {
        try await forEach(selection, recording: act(.eventsDropped, selection, signature)) { keys in
            for key in keys {
                _ = try await database.execute(
                    LockQueue(key: key.queue), RemoveDelivered(key: key.queue, number: key.number),
                    SettleQueue(key: key.queue, now: signature.now), RemoveEndedQueue(key: key.queue))
            }
        }
    }

    private func act(
        _ action: AuditAction, _ selection: Selection, _ signature: AuditSignature
    ) async throws(PostgresError) -> AppendAudit {
        let name = try await database.execute(FindDestinations()).first { $0.id == selection.destination }?.name
        let words = [
            name.map { "destination \($0)" }, selection.id.map { "event \($0)" }, selection.isParked ? "parked" : nil,
        ]
        return AppendAudit(signature, action, detail: words.compactMap(\.self).joined(separator: ", "))
    }

    /// Runs `body` for slices of the selected events, in the order of their keys.
    /// - Parameter act: Is recorded before the first slice. An act that ends early has its record.
    private func forEach(
        _ selection: Selection, recording act: AppendAudit? = nil, _ body: ([EventKey]) async throws -> Void
    ) async throws -> Int {
        var (count, last) = (0, EventKey.first)
        while true {
            let keys = try await database.execute(
                FindEventKeys(selection: selection, after: last, limit: Int64(Self.slice)))
            if count == 0, !keys.isEmpty, let act {
                try await database.withTransaction { try await $0.record(act) }
            }
            try await body(keys)
            count += keys.count
            guard keys.count == Self.slice, let next = keys.last else { return count }
            last = next
        }
    }
}
