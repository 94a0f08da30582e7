internal import HTTPCore
internal import Postgres

/// `PUT /v1/shares/{id}`: replaces the payload of a share, with its manage token or a session of the account that owns
/// it.
///
/// Views count from 0 again, because `maxViews` limits the views of one content. A request that changes nothing keeps
/// the count, so a retry adds no views.
///
/// A wrong token and another account's session return 404, as for a share that does not exist.
struct ReplaceShare: AccountEndpoint, LongBodyEndpoint {
    private let search: ShareSearch
    private let policy: SharePolicy

    init(_ parts: Dependencies) {
        search = ShareSearch(parts)
        policy = parts.configuration.shares
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let now = authorization.now
        let content = try await ShareContent(request, now: now)
        guard let id = ShareID(text: request.parameters["id"]) else { throw Problem.notFound }
        let owner = authorization.accountID
        return try await authorization.transaction { transaction in
            try await Self.replace(
                UpdateShare(id: id, now: now, manager: .owner(owner), content: content), of: owner, in: transaction)
        }
    }

    func identify(_ request: Request) async throws -> MemoryBudget.Owner {
        let owner = try await search.managed(request, now: search.clock.now).owner
        return owner?.memoryOwner ?? .address(request.client.ip.network)
    }

    func respond(to request: Request) async throws -> Response {
        let now = search.clock.now
        let (id, token, owner) = try await search.managed(request, now: now)
        // The token is checked before the body is parsed.
        let content = try await ShareContent(request, now: now)
        let update = UpdateShare(id: id, now: now, manager: .token(token.hash), content: content)
        if let owner {
            return try await search.database.withTransaction(key: .account(owner)) {
                try await Self.replace(update, of: owner, in: $0)
            }
        }
        guard policy.acceptsAnonymous else { throw ShareProblem.anonymousClosed }
        try content.checkAnonymous(now: now)
        return try await search.database.withTransaction(key: .share(id)) {
            try await Self.write(update, of: .nobody, in: $0)
        }
    }

    /// Replaces a share of an account within its plan, with the account's row locked.
    private static func replace(
        _ update: UpdateShare, of owner: AccountID, in transaction: Transaction
    ) async throws -> Response {
        guard let allowed = try await transaction.execute(LockShareOwner(accountID: owner)).first else {
            throw Problem.notFound
        }
        let used = Int64(update.content.sealed.bytes.count)
        guard used <= allowed else {
            throw ItemProblem.quotaExceeded(limit: "itemBytes", allowed: allowed, used: used)
        }
        return try await write(update, of: owner, in: transaction)
    }

    private static func write(
        _ update: UpdateShare, of account: AccountID, in transaction: Transaction
    ) async throws -> Response {
        guard let header = try await transaction.execute(update).first else { throw Problem.notFound }
        _ = try await transaction.execute(
            UpdateAccountShare(accountID: account, id: update.id, expiresAt: header.expiresAt))
        return .json(capacity: 384) { writer in writer.object { writer in header.write(to: &writer) } }
    }
}

/// Updates the end of a share in the account's list.
struct UpdateAccountShare: Statement {
    let accountID: AccountID
    let id: ShareID
    let expiresAt: Timestamp?

    static let sql: SQL<Self> = """
        UPDATE saltern.account_shares h SET expires_at = \(\.expiresAt)
            WHERE h.account_id = \(\.accountID) AND h.share_id = \(\.id)
        """
}
