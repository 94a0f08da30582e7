public import Postgres

/// Creates, lists and removes services for an operator.
public struct ServiceAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner, because the server role cannot create services.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// The reason why a command changed nothing.
    public enum Refusal: Error, Equatable, CustomStringConvertible {
        case nameTaken
        case noSuchService

        public var description: String {
            switch self {
            case .nameTaken: "there is a service of this name: remove it, or choose another name"
            case .noSuchService: "there is no such service; see saltern service list"
            }
        }
    }

    /// Creates a service.
    /// - Parameter show: Receives the credential before the commit, because it is shown only once. If `show` throws,
    ///   the service is not created.
    /// - Throws: ``Refusal/nameTaken``, an error of `show`, or a `PostgresError`.
    public func create(
        _ name: ServiceName, for audience: AudienceName, by signature: AuditSignature,
        show: (ServiceCredential) throws -> Void = { _ in }
    ) async throws -> ServiceCredential {
        try await database.withTransaction { transaction in
            let credential = ServiceCredential.random()
            let insert = InsertService(hash: credential.hash, name: name, audience: audience, now: signature.now)
            guard try await !transaction.execute(insert).isEmpty else { throw Refusal.nameTaken }
            try show(credential)
            try await transaction.record(
                AppendAudit(signature, .serviceCreated, detail: "service \(name), audience \(audience)"))
            return credential
        }
    }

    /// All services, by name.
    public func services() async throws(PostgresError) -> [Service] { try await database.execute(FindServices()) }

    /// Removes a service. Its credential is rejected from then on.
    /// - Throws: ``Refusal/noSuchService`` or a `PostgresError`.
    public func remove(_ name: ServiceName, by signature: AuditSignature) async throws {
        try await database.withTransaction { transaction in
            guard let audience = try await transaction.execute(RemoveService(name: name)).first else {
                throw Refusal.noSuchService
            }
            try await transaction.record(
                AppendAudit(signature, .serviceRemoved, detail: "service \(name), audience \(audience)"))
        }
    }
}

/// Finds all services, by name.
struct FindServices: Statement {
    typealias Row = Service

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.service, s.audience, s.created_at FROM saltern.services s ORDER BY s.service"
}

/// Stores a service. Returns no row if the name is taken. Requires the rights of the schema's owner.
struct InsertService: Statement {
    typealias Row = ServiceName

    let hash: ServiceHash
    let name: ServiceName
    let audience: AudienceName
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.services (token_hash, service, audience, created_at)
        VALUES (\(\.hash), \(\.name), \(\.audience), \(\.now))
        ON CONFLICT (service) DO NOTHING
        RETURNING service
        """
}

/// Removes a service. Returns no row if the name is unknown. Requires the rights of the schema's owner.
struct RemoveService: Statement {
    typealias Row = AudienceName

    let name: ServiceName

    static let sql: SQL<Self> = "DELETE FROM saltern.services WHERE service = \(\.name) RETURNING audience"
}

/// The statements of audiences.
extension StatementList {
    static var audiences: [any Statement.Type] {
        [
            StorePairwiseKey.self, FindService.self, FindServices.self, InsertService.self, RemoveService.self,
            Owned<FindTokenSubject>.self, FindPlanOfSession.self,
        ]
    }
}
