internal import HTTPCore
internal import Postgres

/// `HEAD /v1/shares/{id}`: whether there is something to fetch, without a view: what link previews do, and what a page
/// asks before it offers a view that counts.
struct LookAtShare: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let misses: ShareMisses

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        misses = ShareMisses(parts.throttle)
    }

    func respond(to request: Request) async throws -> Response {
        let viewsLeft = try await misses.find(request) { id in
            try await database.execute(CountViewsLeft(id: id, now: clock.now)).first
        }
        var response = Response(status: .ok, fields: ["Content-Type": "application/json"])
        if let viewsLeft { response.fields.append("Saltern-Views-Left", String(viewsLeft)) }
        return response
    }
}
