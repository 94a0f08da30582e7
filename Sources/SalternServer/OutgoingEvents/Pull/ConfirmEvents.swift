internal import HTTPCore
internal import Postgres

/// `POST /v1/service-events/ack`: removes events that a service has processed, in any order. Unknown identifiers count
/// as confirmed earlier.
struct ConfirmEvents: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
    }

    private struct Body {
        let destination: String
        let ids: [EventID]

        init(_ request: Request) async throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            destination = try members.required("destination") { try $0.text().string }
            ids = try members.array("ids", count: 1...LeaseEvents.countLimit) { json, _ in
                guard let id = EventID(try json.text().string) else {
                    throw Problem(
                        .unprocessableContent, "invalid_event_id",
                        detail: "`ids` must have identifiers of events: `msg_` and 32 hexadecimal digits.", field: "ids"
                    )
                }
                return id
            }
        }
    }

    func respond(to request: Request) async throws -> Response {
        let service = try await ServiceAuthentication(database: database).service(of: request)
        let body = try await Body(request)
        let destination = try await database.pulledDestination(body.destination, of: service)
        let found = try await database.execute(
            FindEventsByID(destinationID: destination.id, ids: Array(Set(body.ids.map(\.uuid)))))
        let queues = Dictionary(grouping: found) {
            EventQueueKey(accountID: $0.accountID, destinationID: destination.id, lane: $0.lane)
        }
        for (key, rows) in queues {
            _ = try await database.execute(
                LockQueue(key: key), RemoveConfirmed(key: key, numbers: rows.map(\.number)),
                SettleQueue(key: key, now: clock.now), RemoveEndedQueue(key: key))
        }
        return .json { writer in
            writer.object { writer in writer.member("confirmed", found.count) }
        }
    }
}

/// Finds events of a destination by their public identifiers. The destination is a column of each identifier: as a
/// constant, the planner could read all events of the destination.
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
        SELECT e.account_id, e.lane, e.number
        FROM unnest(array_fill(\(\.destinationID)::uuid, ARRAY[cardinality(\(\.ids)::uuid[])]), \(\.ids)::uuid[])
            AS w (destination_id, event_id)
        JOIN saltern.outgoing_events e ON e.destination_id = w.destination_id AND e.event_id = w.event_id
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
