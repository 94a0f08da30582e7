internal import Cryptography
public import Postgres

/// Creates, lists, changes and removes destinations for an operator.
public struct DestinationAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner, because the server role cannot create destinations.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// The reason why a command changed nothing.
    public enum Refusal: Error, Equatable, CustomStringConvertible {
        case nameTaken
        case tooMany
        case noSuchDestination
        case hasNoSecret

        public var description: String {
            switch self {
            case .nameTaken: "there is a destination of this name: remove it, or choose another name"
            case .tooMany: "there are \(Destination.limit) destinations, the most that are possible: remove one"
            case .noSuchDestination: "there is no such destination; see saltern destination list"
            case .hasNoSecret: "the destination has no URL and so no secret: a service fetches its events"
            }
        }
    }

    /// The time for which the previous secret also signs after a rotation.
    public static let rotationTime = Duration.seconds(86_400)

    /// The description of a new destination.
    public struct Terms: Sendable {
        public let name: DestinationName
        public let audience: AudienceName
        let url: DestinationURL?
        let kinds: [EventKind]

        /// - Parameter url: Nil if a service of the audience fetches the events.
        public init(_ name: DestinationName, audience: AudienceName, url: DestinationURL?, kinds: [EventKind]) {
            self.name = name
            self.audience = audience
            self.url = url
            self.kinds = kinds
        }
    }

    /// Creates a destination.
    /// - Parameter show: Receives the secret before the commit, because it is shown only once. If `show` throws, the
    ///   destination is not created. A destination without a URL has no secret.
    /// - Throws: ``Refusal``, an error of `show`, or a `PostgresError`.
    public func create(
        _ terms: Terms, sealingWith masterKey: MasterKey, by signature: AuditSignature,
        show: (WebhookSecret?) throws -> Void = { _ in }
    ) async throws {
        try await database.withTransaction { transaction in
            let id = DestinationID.random()
            let secret = terms.url == nil ? nil : WebhookSecret.random()
            let sealed = try secret.map { try masterKey.seal($0.bytes, for: .destination(id)) }
            let insert = InsertDestination(
                id: id, name: terms.name, audience: terms.audience, url: terms.url?.description,
                kinds: terms.kinds.map(\.rawValue), sealedSecret: sealed, now: signature.now)
            guard try await !transaction.execute(insert).isEmpty else { throw Refusal.nameTaken }
            guard try await transaction.execute(FindDestinations()).count <= Destination.limit else {
                throw Refusal.tooMany
            }
            try show(secret)
            try await transaction.record(
                AppendAudit(
                    signature, .destinationCreated, detail: "destination \(terms.name), audience \(terms.audience)"))
        }
    }

    /// All destinations, by name.
    public func destinations() async throws(PostgresError) -> [Destination] {
        try await database.execute(FindDestinations())
    }

    /// Returns the destination with a name.
    /// - Throws: ``Refusal/noSuchDestination``, or a `PostgresError`.
    public func destination(_ name: DestinationName) async throws -> Destination {
        guard let found = try await destinations().first(where: { $0.name == name }) else {
            throw Refusal.noSuchDestination
        }
        return found
    }

    /// Generates another secret. The previous one also signs for ``rotationTime``. A second rotation in that time keeps
    /// that one, because receivers may not have the secret between them. Enables a disabled destination.
    /// - Parameter show: See ``create(_:sealingWith:by:show:)``.
    public func rotate(
        _ name: DestinationName, sealingWith masterKey: MasterKey, by signature: AuditSignature,
        show: (WebhookSecret) throws -> Void = { _ in }
    ) async throws {
        let destination = try await destination(name)
        try await database.withTransaction { transaction in
            let secret = WebhookSecret.random()
            let rotated = try await transaction.execute(
                RotateDestinationSecret(
                    id: destination.id,
                    sealedSecret: try masterKey.seal(secret.bytes, for: .destination(destination.id)),
                    now: signature.now, previousUntil: signature.now + Self.rotationTime))
            guard !rotated.isEmpty else { throw Refusal.hasNoSecret }
            try show(secret)
            try await transaction.record(AppendAudit(signature, .destinationRotated, detail: "destination \(name)"))
        }
    }

    /// Removes a destination with its events.
    public func remove(_ name: DestinationName, by signature: AuditSignature) async throws {
        let id = try await database.withTransaction { transaction in
            guard let id = try await transaction.execute(RemoveDestination(name: name)).first else {
                throw Refusal.noSuchDestination
            }
            try await transaction.record(AppendAudit(signature, .destinationRemoved, detail: "destination \(name)"))
            return id
        }
        // The purge removes rows that are stored later, by transactions that read the destination before its removal.
        while try await OrphanedEvents.removeSome(of: id, from: database) {}
    }
}

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
