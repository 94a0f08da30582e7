internal import HTTPCore
internal import Postgres

/// `HEAD /v1/shares/{id}`: returns 200 if the share can be fetched, without counting a view. Link previews send it, and
/// the page before it offers a view that counts.
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
