public import Postgres

/// What an operator does with services.
public struct ServiceAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner: the server's role creates no services.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Why nothing was done.
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
    /// - Parameter show: Takes the credential before it is committed, because it can be shown once only: an error of it
    ///   leaves no service.
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

    /// Removes a service: its credential is refused from now on.
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
