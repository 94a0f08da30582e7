internal import HTTPCore

/// `GET /v1/health/live`: the process runs and its loop turns. Touches nothing.
struct ShowLiveness: OpenEndpoint {
    static let response: Response = .json { writer in
        writer.object { writer in writer.member("status", "live") }
    }

    func respond(to request: Request) async -> Response { Self.response }
}
