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
        let (id, invitation, entries) = try await search.find(request, token, now: search.clock.now, mustBeOpen: true)
        _ = try await search.database.execute(CountOpening(id: id))
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
    private let limiter: RateLimiter

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        limiter = parts.nodeState.addresses
    }

    /// Finds the invitation in a request's path, and the entries of its vault's log.
    ///
    /// - Throws: ``RateLimited``, 404, or a `PostgresError`.
    func find(
        _ request: Request, _ token: TokenHash?, now: Timestamp, mustBeOpen: Bool
    ) async throws -> (InvitationID, StoredInvitation, entries: [[UInt8]]) {
        if let limited = limiter.refusal(request.client, .shareMiss) { throw limited }
        if let id = request.parameters["id"].flatMap({ InvitationID(pathParameter: $0) }), let token,
            let found = try await database.execute(FindInvitation(id: id, tokenHash: token, now: now)).first
        {
            let entries = try await database.execute(FindEntries(vaultID: found.vaultID))
            if !mustBeOpen || Self.isOpen(id, in: entries) { return (id, found, entries) }
        }
        limiter.take(request.client, .shareMiss)
        throw Problem.notFound
    }

    private static func isOpen(_ id: InvitationID, in entries: [[UInt8]]) -> Bool {
        openInvitations(in: entries).contains(id)
    }

    /// Returns the open invitations of a stored log.
    static func openInvitations(in entries: [[UInt8]]) -> [InvitationID] {
        guard let log = try? MembershipLog(entries.map { try Entry($0) }, areVerified: true) else { return [] }
        return log.openInvitations.map { InvitationID($0.terms.id.bytes) }
    }
}
