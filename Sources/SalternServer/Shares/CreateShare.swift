internal import HTTPCore
internal import Postgres

/// `POST /v1/shares`: puts a sealed payload behind a new link.
///
/// Two rows, because links are unique in one table and accounts count their shares in another; the second is written
/// only if the first was, in the same transaction.
struct CreateShare: AccountEndpoint, OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let policy: SharePolicy

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        policy = parts.configuration.shares
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let now = authorization.now
        let content = try JSONBody.read(request) { try ShareContent(&$0, now: now) }
        let id = ShareID.random()
        let token = ManageToken()
        let noted = try await authorization.write(
            InsertAccountShare(
                id: id, expiresAt: content.expiresAt, byteCount: Int64(content.sealed.bytes.count)),
            followedBy: InsertShare(
                account: authorization.accountID, id: id, manageHash: token.hash, content: content, now: now))
        guard let share = noted.first else { throw Unauthenticated() }
        if let limit = share.exceededLimit {
            throw ItemProblem.quotaExceeded(limit: limit, allowed: share.allowed, used: share.used)
        }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    /// Without an account; routed only where the policy allows it.
    func respond(to request: Request) async throws -> Response {
        let now = clock.now
        let content = try JSONBody.read(request) { try ShareContent(&$0, now: now) }
        try content.checkAnonymous(now: now)
        let id = ShareID.random()
        let token = ManageToken()
        let (noted, _) = try await database.execute(
            InsertAnonymousShare(
                id: id, now: now, expiresAt: content.expiresAt, limit: Int64(policy.anonymousLimit)),
            InsertShare(account: .nobody, id: id, manageHash: token.hash, content: content, now: now))
        guard !noted.isEmpty else { throw ShareProblem.anonymousClosed }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    private static func reply(_ header: ShareHeader, _ token: ManageToken) -> Response {
        .json(.created, capacity: 512) { writer in
            writer.object { writer in
                header.write(to: &writer)
                writer.member("manageToken", token.text)
            }
        }
    }
}
