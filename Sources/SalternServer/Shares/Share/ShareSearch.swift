internal import HTTPCore
internal import Postgres

/// What a link or a manage token leads to, and what keeps client addresses from walking through ids: whoever has missed
/// too often is told so before anything is looked up, whatever is there.
struct ShareSearch: Sendable {
    let database: PostgresClient
    let clock: any WallClock
    private let limiter: RateLimiter

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        limiter = parts.nodeState.addresses
    }

    /// Looks for the share that a request's path names.
    /// - Parameters:
    ///   - request: From whose address misses are counted.
    ///   - find: Returns nil when there is no such share for this client, or not any more.
    /// - Throws: ``RateLimited``, 404 `not_found`, or what `find` throws.
    func find<Found>(_ request: Request, _ find: (ShareID) async throws -> Found?) async throws -> Found {
        if let limited = limiter.refusal(request.client, .shareMiss) { throw limited }
        if let id = ShareID(text: request.parameters["id"]), let found = try await find(id) { return found }
        limiter.take(request.client, .shareMiss)
        throw Problem.notFound
    }

    /// The share whose manage token the request shows, and whose it is.
    /// - Throws: ``Unauthenticated`` when it shows none, and as ``find(_:_:)``.
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
