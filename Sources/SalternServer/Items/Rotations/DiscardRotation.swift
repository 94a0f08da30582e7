internal import HTTPCore

/// `DELETE /v1/rotations/{id}`: deletes a rotation and its staged items. The items stay unchanged.
struct DiscardRotation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        // In slices, so that other devices' writes never wait for long. The rotation's row is removed last.
        while true {
            guard let state = try await authorization.write(DiscardStaged(id: id)).first else { throw Problem.notFound }
            if state.isCommitted { throw RotationProblem.committed }
            if state.isGone { return .noContent }
        }
    }
}
