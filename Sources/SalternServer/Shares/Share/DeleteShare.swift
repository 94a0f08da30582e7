internal import HTTPCore
internal import Postgres

/// `DELETE /v1/shares/{id}`: deletes a share, with its manage token or a session of the account that owns it.
struct DeleteShare: AccountEndpoint, OpenEndpoint {
    private let search: ShareSearch

    init(_ parts: Dependencies) { search = ShareSearch(parts) }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        guard let id = ShareID(text: request.parameters["id"]) else { throw Problem.notFound }
        let owner = authorization.accountID
        let now = authorization.now
        let wasOpen = try await authorization.transaction { transaction in
            try await Self.remove(RemoveShare(id: id, now: now, manager: .owner(owner)), in: transaction)
        }
        guard wasOpen else { throw Problem.notFound }
        return .noContent
    }

    func respond(to request: Request) async throws -> Response {
        let now = search.clock.now
        // Found first, so that a wrong token occupies no dedicated connection.
        let (id, token, owner) = try await search.managed(request, now: now)
        let remove = RemoveShare(id: id, now: now, manager: .token(token.hash))
        let wasOpen = try await search.database.withTransaction(key: .share(id, of: owner)) { transaction in
            try await Self.remove(remove, lockingFirst: owner ?? .nobody, in: transaction)
        }
        guard wasOpen else { throw Problem.notFound }
        return .noContent
    }

    private static func remove(
        _ remove: RemoveShare, lockingFirst owner: AccountID, in transaction: Transaction
    ) async throws -> Bool {
        _ = try await transaction.execute(LockAccount(accountID: owner))
        return try await self.remove(remove, in: transaction)
    }

    /// Removes both rows. The owner's account must be locked.
    ///
    /// - Returns: True if the share was still open.
    private static func remove(_ remove: RemoveShare, in transaction: Transaction) async throws -> Bool {
        guard let removed = try await transaction.execute(remove).first else { return false }
        _ = try await transaction.execute(
            RemoveAccountShares(accountID: removed.owner ?? .nobody, ids: [remove.id]))
        return removed.wasOpen
    }
}

/// Finds shares by link or manage token, and limits the enumeration of ids. A client address with too many misses is
/// rejected before any query, even for an existing share.
struct ShareSearch: Sendable {
    let database: PostgresClient
    let clock: any WallClock
    private let limiter: RateLimiter

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        limiter = parts.nodeState.addresses
    }

    /// Finds the share in a request's path.
    ///
    /// - Parameters:
    ///   - request: Misses count for its client address.
    ///   - find: Returns nil if the share does not exist for this client.
    /// - Throws: ``RateLimited``, 404 `not_found`, or an error of `find`.
    func find<Found>(_ request: Request, _ find: (ShareID) async throws -> Found?) async throws -> Found {
        if let limited = limiter.refusal(request.client, .shareMiss) { throw limited }
        if let id = ShareID(text: request.parameters["id"]), let found = try await find(id) { return found }
        limiter.take(request.client, .shareMiss)
        throw Problem.notFound
    }

    /// Finds the share of the request's manage token, and its owner.
    ///
    /// - Throws: ``Unauthenticated`` without a token, and the errors of ``find(_:_:)``.
    func managed(
        _ request: Request, now: Timestamp
    ) async throws -> (id: ShareID, token: PresentedManageToken, owner: AccountID?) {
        guard let token = PresentedManageToken(request.head.fields) else { throw Unauthenticated() }
        return try await find(request) { id in
            try await database.execute(FindManagedShare(id: id, now: now, manageHash: token.hash)).first.map {
                (id, token, $0)
            }
        }
    }
}
