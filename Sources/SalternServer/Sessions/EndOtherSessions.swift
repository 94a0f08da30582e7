internal import HTTPCore

/// `DELETE /v1/sessions`: ends every session of the caller but the one that asks.
struct EndOtherSessions: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let ended = try await authorization.write(RemoveOtherSessions())
        return .json { writer in
            writer.object { writer in writer.member("ended", ended.count { $0 }) }
        }
    }
}
