internal import HTTPCore
internal import Postgres

/// `GET /v1/account/events`: lists the account's security log in pages, latest entry first.
struct ListEvents: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let position: SecurityLogPosition = try request.query.optional("page") ?? .newest
        guard let userid = try await authorization.read(FindUserid()).first else { throw Unauthenticated() }
        let rows = try await authorization.read(FindSecurityLog(position: position, limit: Int64(limit) + 1))
        let page = SecurityLogPage(
            rows, try await authorization.attempts.failures(of: userid), behind: position, limit: limit)
        return .json(capacity: 64 + page.entries.count * 192) { writer in
            writer.object { writer in
                writer.array("events") { writer in
                    for entry in page.entries { writer.object { writer in entry.write(to: &writer) } }
                }
                if let next = page.next { writer.member("nextPage", next.text) }
            }
        }
    }
}
