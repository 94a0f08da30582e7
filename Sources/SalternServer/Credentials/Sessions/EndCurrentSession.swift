internal import HTTPCore

/// `DELETE /v1/sessions/current`: ends the caller's session.
struct EndCurrentSession: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.end(RemoveCurrentSession())
        return .noContent
    }
}
