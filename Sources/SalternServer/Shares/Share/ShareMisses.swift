internal import HTTPCore

/// Keeps client addresses from walking through ids: whoever has missed too often is told so before anything is looked
/// up, whatever is there.
struct ShareMisses: Sendable {
    private let limiter: RateLimiter

    init(_ throttle: Throttle) {
        limiter = throttle.addresses
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
}
