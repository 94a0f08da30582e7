internal import HTTPCore
internal import Postgres

/// Authenticates the service that sends a request. Endpoints of services reach an audience only through it.
struct ServiceAuthentication: Sendable {
    let database: PostgresClient

    /// Returns the service of the request's credential.
    /// - Throws: ``ServiceUnauthenticated``, or a `PostgresError`.
    func service(of request: Request) async throws -> Service {
        let credential = try PresentedServiceCredential(request.head.fields)
        guard let service = try await database.execute(FindService(hash: credential.hash)).first else {
            throw ServiceUnauthenticated()
        }
        return service
    }
}
