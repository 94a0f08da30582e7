internal import HTTPCore

/// `DELETE /v1/sessions/{id}`: ends one of the caller's sessions.
struct EndSession: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: SessionID = try request.parameters.require("id")
        guard try await !authorization.end(RemoveSession(id: id)).isEmpty else { throw Problem.notFound }
        return .noContent
    }
}
