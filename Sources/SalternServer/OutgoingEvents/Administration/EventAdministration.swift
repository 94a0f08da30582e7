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

/// The key of an event.
struct EventKey: Sendable, DecodableRow {
    let queue: EventQueueKey
    let number: Int64

    /// The key before all others.
    static let first = EventKey(
        queue: EventQueueKey(accountID: AccountID(.zero), destinationID: DestinationID(.zero), lane: .zero), number: 0)

    init(queue: EventQueueKey, number: Int64) {
        self.queue = queue
        self.number = number
    }

    init(row: inout RowReader) throws(PostgresError) {
        queue = EventQueueKey(accountID: try row.next(), destinationID: try row.next(), lane: try row.next())
        number = try row.next()
    }
}

extension EventAdministration.Selection {
    fileprivate var uuid: UUID? { id?.uuid }

    /// The condition that an event `e` is selected.
    fileprivate static func holds<Root>(
        _ path: any KeyPath<Root, EventAdministration.Selection> & Sendable
    ) -> SQL<Root> {
        let condition: SQL<EventAdministration.Selection> = """
            (\(\.destination)::uuid IS NULL OR e.destination_id = \(\.destination))
            AND (\(\.uuid)::uuid IS NULL OR e.event_id = \(\.uuid)) AND (NOT \(\.isParked) OR e.parked_at IS NOT NULL)
            """
        return "\(condition, of: path)"
    }
}

/// Finds waiting and parked events, oldest first.
struct FindUndelivered: Statement {
    typealias Row = EventAdministration.Entry

    let selection: EventAdministration.Selection
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.event_id, coalesce(d.name, '-'), e.account_id, e.kind, e.occurred_at, coalesce(q.attempts, 0), q.due_at,
            e.parked_at
        FROM saltern.outgoing_events e
        LEFT JOIN saltern.event_queues q
            ON q.account_id = e.account_id AND q.destination_id = e.destination_id AND q.lane = e.lane
        LEFT JOIN saltern.destinations d ON d.destination_id = e.destination_id
        WHERE \(EventAdministration.Selection.holds(\.selection))
        ORDER BY e.occurred_at, e.event_id LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            id: EventID(try row.next(UUID.self)), destination: try row.next(), accountID: try row.next(),
            kind: try row.next(), occurredAt: try row.next(), attempts: Int(try row.next(Int32.self)),
            dueAt: try row.next(), parkedAt: try row.next())
    }
}

/// Finds the keys of selected events after a given one, in their order.
struct FindEventKeys: Statement {
    typealias Row = EventKey

    let selection: EventAdministration.Selection
    let after: EventKey
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id, e.destination_id, e.lane, e.number FROM saltern.outgoing_events e
        WHERE \(EventAdministration.Selection.holds(\.selection))
            AND (e.account_id, e.destination_id, e.lane, e.number) > (\(\.after.queue.accountID),
                \(\.after.queue.destinationID), \(\.after.queue.lane), \(\.after.number))
        ORDER BY e.account_id, e.destination_id, e.lane, e.number LIMIT \(\.limit)
        """
}

/// Releases a parked event for attempts, for as long as a new one. Follows ``WakeQueue``.
struct UnparkEvent: Statement {
    let key: EventQueueKey
    let number: Int64
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.outgoing_events e SET parked_at = NULL, waiting_since = \(\.now)
        WHERE \(EventQueueKey.holds("e", \.key)) AND e.number = \(\.number)
        """
}

/// Makes a queue due, and ends its lease.
struct WakeQueue: Statement {
    let key: EventQueueKey
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.event_queues AS q (account_id, destination_id, lane, last_number, latest, due_at, ends)
        VALUES (\(\.key.accountID), \(\.key.destinationID), \(\.key.lane), 0, \(\.key.lane), \(\.now), true)
        ON CONFLICT (account_id, destination_id, lane) DO UPDATE
        SET due_at = \(\.now), attempts = 0, lease = NULL
        """
}
