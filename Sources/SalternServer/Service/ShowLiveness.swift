internal import HTTPCore

/// `GET /v1/health/live`: returns 200 while the process and its loop run, without any query.
struct ShowLiveness: OpenEndpoint {
    static let response: Response = .json { writer in
        writer.object { writer in writer.member("status", "live") }
    }

    func respond(to request: Request) async -> Response { Self.response }
}
