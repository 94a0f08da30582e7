public import Postgres

/// Receives events as a program of the operator: by HTTP at its URL, or by fetching if it has none.
public struct Destination: Sendable, Equatable {
    public let id: DestinationID
    public let name: DestinationName
    public let audience: AudienceName
    /// Nil if a service of the audience fetches the events.
    public let url: String?
    public let kinds: [EventKind]
    public let createdAt: Timestamp
    /// The time since which it receives nothing, because its receiver answered 410.
    public internal(set) var disabledAt: Timestamp?
    /// The time until which the previous secret also signs.
    public let previousUntil: Timestamp?
    /// The secrets, sealed by the master key, the current one first.
    let sealedSecrets: [[UInt8]]

    /// The most destinations of an installation. Each adds a row to every account event.
    public static let limit = 32

    var isDisabled: Bool { disabledAt != nil }

    func disabled(at moment: Timestamp) -> Destination {
        var destination = self
        destination.disabledAt = moment
        return destination
    }

    func gets(_ kind: EventKind) -> Bool { !isDisabled && kinds.contains(kind) }
}

/// Names a destination in the database.
public typealias DestinationID = Identifier<Destination>

/// The name of a destination.
public typealias DestinationName = OperatorName<Destination>

/// The address of a receiver: an https URL without user, fragment or control characters.
public struct DestinationURL: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    static let byteLimit = 2_048

    public init?(_ text: String) {
        guard text.utf8.count <= Self.byteLimit, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let match = text.wholeMatch(
                of: #/https:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([\/?][^#\\]*)?/#),
            match.2.map({ (1...65_535).contains(Int($0.dropFirst()) ?? 0) }) ?? true
        else { return nil }
        description = text
    }
}

extension Destination {
    /// Returns the secrets that sign at a time, the current one first. Omits secrets that no master key opens.
    func secrets(at now: Timestamp, _ masterKey: MasterKey) -> [WebhookSecret] {
        // A later end was set while the database's clock was ahead.
        let latest = now + DestinationAdministration.rotationTime + AttemptPolicy.clockSlack
        let isRotating = previousUntil.map { now < $0 && $0 <= latest } ?? false
        return sealedSecrets.prefix(isRotating ? 2 : 1).compactMap {
            (try? masterKey.open($0, for: .destination(id))).map(WebhookSecret.init)
        }
    }
}

extension SealedPlace {
    /// The secrets of a destination.
    static func destination(_ id: DestinationID) -> SealedPlace {
        SealedPlace(authenticatedData: Array("saltern/destination/".utf8) + id.uuid.bytes)
    }
}

extension Destination: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `destinations` as `d`.
    static let columns: SQLFragment = """
        d.destination_id, d.name, d.audience, d.url, d.kinds, d.created_at, d.disabled_at, d.previous_until, d.secret,
            d.previous_secret
        """

    public init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        name = try row.next()
        audience = try row.next()
        url = try row.next()
        // Kinds of a later release are ignored.
        kinds = try row.next([String].self).compactMap(EventKind.init(rawValue:))
        createdAt = try row.next()
        disabledAt = try row.next()
        previousUntil = try row.next()
        let secrets: [[UInt8]?] = [try row.next(), try row.next()]
        sealedSecrets = secrets.compactMap(\.self)
    }
}

/// Finds all destinations, by name.
struct FindDestinations: Statement {
    typealias Row = Destination

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(Destination.columns) FROM saltern.destinations d ORDER BY d.name"
}

/// Stores a destination. Returns no row if the name is taken. Requires the rights of the schema's owner.
struct InsertDestination: Statement {
    typealias Row = DestinationID

    let id: DestinationID
    let name: DestinationName
    let audience: AudienceName
    let url: String?
    let kinds: [String]
    let sealedSecret: [UInt8]?
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.destinations (destination_id, name, audience, url, kinds, secret, created_at)
        VALUES (\(\.id), \(\.name), \(\.audience), \(\.url), \(\.kinds), \(\.sealedSecret), \(\.now))
        ON CONFLICT (name) DO NOTHING
        RETURNING destination_id
        """
}

/// Gives a destination another secret, and enables it. The current secret becomes the previous one.
struct RotateDestinationSecret: Statement {
    typealias Row = DestinationID

    let id: DestinationID
    let sealedSecret: [UInt8]
    let now: Timestamp
    let previousUntil: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.destinations d SET
            previous_secret = CASE WHEN d.previous_until > \(\.now) AND d.previous_until <= \(\.previousUntil)
                THEN d.previous_secret ELSE d.secret END,
            previous_until = \(\.previousUntil), secret = \(\.sealedSecret), disabled_at = NULL
        WHERE d.destination_id = \(\.id) AND d.url IS NOT NULL
        RETURNING d.destination_id
        """
}

/// Disables a destination whose receiver is gone.
struct DisableDestination: Statement {
    typealias Row = DestinationID

    let id: DestinationID
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.destinations d SET disabled_at = \(\.now)
        WHERE d.destination_id = \(\.id) AND d.disabled_at IS NULL
        RETURNING d.destination_id
        """
}

/// Removes a destination. Requires the rights of the schema's owner.
struct RemoveDestination: Statement {
    typealias Row = DestinationID

    let name: DestinationName

    static let sql: SQL<Self> =
        "DELETE FROM saltern.destinations d WHERE d.name = \(\.name) RETURNING d.destination_id"
}

/// Replaces secrets by the same ones, sealed again. Returns no row if the stored secrets have changed since they were
/// read.
struct ReplaceDestinationSecrets: Statement {
    typealias Row = DestinationID

    let id: DestinationID
    let old: [UInt8]
    let new: [UInt8]
    let newPrevious: [UInt8]?

    static let sql: SQL<Self> = """
        UPDATE saltern.destinations d SET secret = \(\.new), previous_secret = \(\.newPrevious)
        WHERE d.destination_id = \(\.id) AND d.secret = \(\.old)
        RETURNING d.destination_id
        """
}

/// The statements of outgoing events.
extension StatementList {
    static var outgoingEvents: [any Statement.Type] {
        [
            FindDestinations.self, InsertDestination.self, RotateDestinationSecret.self, DisableDestination.self,
            RemoveDestination.self, ReplaceDestinationSecrets.self, QueueAccountEvent.self, StoreAccountEvent.self,
            EndQueues.self, RemoveIdleQueues.self, QueueOpenedSession.self, StoreOpenedSession.self, QueueEnds.self,
            StoreEnds.self, Guarded<QueueCallersEnds<RemoveSession>>.self,
            Guarded<StoreCallersEnds<RemoveSession>>.self, Guarded<QueueCallersEnds<RemoveOtherSessions>>.self,
            Guarded<StoreCallersEnds<RemoveOtherSessions>>.self, Guarded<QueueCallersEnds<RemoveCurrentSession>>.self,
            Guarded<StoreCallersEnds<RemoveCurrentSession>>.self, QueueChange.self, StoreChange.self,
            FindDueQueues.self, FindTestQueue.self, LeaseQueue.self, FindLeasedEvents.self, RemoveDelivered.self,
            ExtendLease.self, EndLease.self, RemoveEndedQueue.self, DelayQueue.self, ParkEvent.self,
            FindWaitingEvents.self, FindParkedEvents.self, FindEventsByID.self, LockQueue.self, RemoveConfirmed.self,
            SettleQueue.self, TakeDroppedEvents.self, FindUndelivered.self, FindEventKeys.self, UnparkEvent.self,
            WakeQueue.self, FindAccountsOfDestination.self, RemoveEventsOfDestination.self,
            RemoveQueuesOfDestination.self, FindOverdueEvents.self, ParkOverdueEvents.self, FindExpiredEvents.self,
            RemoveExpiredEvents.self, FindIdleQueues.self, LockQueues.self, SettleQueues.self, RemoveEndedQueues.self,
        ]
    }
}
