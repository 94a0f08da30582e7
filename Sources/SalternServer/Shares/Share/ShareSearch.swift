internal import HTTPCore
internal import Postgres

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
