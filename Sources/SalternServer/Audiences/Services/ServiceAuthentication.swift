internal import HTTPCore
internal import Postgres

/// Finds the service that sends a request. Endpoints of services have no other way to an audience.
struct ServiceAuthentication: Sendable {
    let database: PostgresClient

    /// The service whose credential the request shows.
    /// - Throws: ``ServiceUnauthenticated``, or a `PostgresError`.
    func service(of request: Request) async throws -> Service {
        let credential = try PresentedServiceCredential(request.head.fields)
        guard let service = try await database.execute(FindService(hash: credential.hash)).first else {
            throw ServiceUnauthenticated()
        }
        return service
    }
}
