internal import HTTPCore

/// `DELETE /v1/rotations/{id}`: throws away a rotation with all that is staged. The items stay as they are.
struct DiscardRotation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        // In bites, so that other devices' writes never wait for long; the row that names them goes last.
        while true {
            guard let state = try await authorization.write(DiscardStaged(id: id)).first else { throw Problem.notFound }
            if state.isCommitted { throw RotationProblem.committed }
            if state.isGone { return .noContent }
        }
    }
}
