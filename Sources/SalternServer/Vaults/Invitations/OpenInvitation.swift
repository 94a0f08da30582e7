internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `GET /v1/invitations/{id}`: returns an invitation's preview and the vault's log to the holder of the link's token,
/// without a session. Managers see the number of such requests.
///
/// Unknown, malformed, expired, closed and used-up invitations, and wrong tokens, all return 404.
struct OpenInvitation: OpenEndpoint {
    private let search: InvitationSearch

    init(_ parts: Dependencies) { search = InvitationSearch(parts) }

    func respond(to request: Request) async throws -> Response {
        let token = InvitationToken.presented(request.head.fields)
        let (id, invitation) = try await search.find(request, token, now: search.clock.now)
        if let wait = search.door.openings.take(id.uuid) { throw RateLimited(wait: wait) }
        let log = try await search.door.log(of: invitation.vaultID, in: search.database, pace: request.pace)
        guard log.openInvitations.contains(where: { InvitationID($0.terms.id.bytes) == id }) else {
            throw search.miss(request)
        }
        let find = FindEntries(vaultID: invitation.vaultID)
        let (entries, _) = try await search.database.execute(find, CountOpening(id: id))
        return .json(capacity: 2_048 + entries.reduce(0) { $0 + $1.count * 4 / 3 + 8 }) { writer in
            writer.object { writer in
                writer.member("vault", invitation.vaultID)
                writer.member("preview", base64: invitation.preview)
                writer.array("entries") { writer in for entry in entries { writer.string(base64: entry) } }
            }
        }
    }
}

/// Finds invitations by link. Misses are limited as those of shares.
struct InvitationSearch: Sendable {
    let database: PostgresClient
    let clock: any WallClock
    let door: VaultDoor
    private let limiter: RateLimiter

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        door = parts.nodeState.vaults
        limiter = parts.nodeState.addresses
    }

    /// Finds the invitation in a request's path. The vault's log decides if it is open.
    ///
    /// - Throws: ``RateLimited``, 404, or a `PostgresError`.
    func find(
        _ request: Request, _ token: TokenHash?, now: Timestamp
    ) async throws -> (InvitationID, StoredInvitation) {
        if let limited = limiter.refusal(request.client, .shareMiss) { throw limited }
        if let id = Self.id(in: request), let token,
            let found = try await database.execute(FindInvitation(id: id, tokenHash: token, now: now)).first
        {
            return (id, found)
        }
        throw miss(request)
    }

    /// The id in a request's path. Nil if it is malformed.
    static func id(in request: Request) -> InvitationID? {
        request.parameters["id"].flatMap { InvitationID(pathParameter: $0) }
    }

    /// Counts a request without an open invitation. Returns the error.
    func miss(_ request: Request) -> Problem {
        limiter.take(request.client, .shareMiss)
        return Problem.notFound
    }
}
