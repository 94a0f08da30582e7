internal import HTTPCore
internal import Postgres

/// `HEAD /v1/shares/{id}`: whether there is something to fetch, without a view: what link previews do, and what a page
/// asks before it offers a view that counts.
struct InspectShare: OpenEndpoint {
    private let search: ShareSearch

    init(_ parts: Dependencies) { search = ShareSearch(parts) }

    func respond(to request: Request) async throws -> Response {
        let viewsLeft = try await search.find(request) { id in
            try await search.database.execute(CountViewsLeft(id: id, now: search.clock.now)).first
        }
        var response = Response(status: .ok, fields: ["Content-Type": "application/json"])
        if let viewsLeft { response.fields.append("Saltern-Views-Left", String(viewsLeft)) }
        return response
    }
}
