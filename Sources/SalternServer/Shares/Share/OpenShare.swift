internal import HTTPCore
internal import Postgres

/// `GET /v1/shares/{id}`: returns the share without authentication, and counts a view.
///
/// Unknown, malformed, expired, used-up, suspended and deleted shares all return 404.
struct OpenShare: OpenEndpoint {
    private let search: ShareSearch

    init(_ parts: Dependencies) { search = ShareSearch(parts) }

    func respond(to request: Request) async throws -> Response {
        guard !Prefetch.isAsked(by: request.head.fields) else { throw ShareProblem.prefetch }
        let now = search.clock.now
        let (id, share) = try await search.find(request) { id in
            try await search.database.execute(TakeView(id: id, now: now), key: .share(id)).first.map { (id, $0) }
        }
        if share.viewsLeft == 0 {
            // The view is counted even if this fails. A purge removes the rest, which belongs to its owner until then.
            let owner = share.owner ?? .nobody
            _ = try? await search.database.execute(
                LockAccount(accountID: owner), RemoveUsedUpShare(id: id, now: now),
                RemoveAccountShares(accountID: owner, ids: [id]), key: .share(id, of: owner))
        }
        return .json(capacity: 320 + share.sealed.count * 4 / 3) { writer in
            writer.object { writer in
                writer.member("format", share.format)
                writer.member("salt", base64: share.salt)
                writer.member("iterations", Int(share.iterations))
                writer.member("sealed", base64: share.sealed)
                if let expiresAt = share.expiresAt, share.viewsLeft != 0 { writer.member("expiresAt", expiresAt) }
                if let viewsLeft = share.viewsLeft { writer.member("viewsLeft", viewsLeft) }
            }
        }
    }
}

/// Recognises requests without a user's action, with which browsers prefetch pages.
enum Prefetch {
    /// Returns true if a field declares a prefetch. The first is the Fetch standard's; older browsers and some proxies
    /// send the others.
    static func isAsked(by fields: RequestFields) -> Bool {
        ["sec-purpose", "purpose", "x-purpose", "x-moz"].contains { fields.contains($0) }
    }
}

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
