internal import HTTPCore

/// What the application knows of a route besides its handler.
public struct RouteMetadata: Sendable {
    /// Method and template, as logs and metrics name the route.
    public let name: String
    /// Which of the client address's buckets pays for a request; none when it costs next to nothing.
    public let rateClass: RateClass?
    /// Whether a session's token is needed.
    public let needsSession: Bool
    /// Who else may call it.
    public let guests: GuestRule
    /// The query parameters that the route knows; every other one is refused.
    public let query: [String]
    /// Those that it knows beside a body of bytes, which has no members.
    public let bytesQuery: [String]
    /// Whether it takes no notice of a query at all: for pages, whose addresses other people's programs add things to.
    public let ignoresQuery: Bool
    /// How long the reply may take.
    public let handlerDeadline: Duration
    /// Finds out who sends a long body before it is read; nil where every body is short. Throws what is answered to
    /// somebody who may not send it.
    let identify: (@Sendable (Request) async throws -> MemoryBudget.Owner)?

    /// Whose session a request showed, if it was looked up before the body was read. A share's manager has none.
    func account(of request: KnownRequest) -> AccountID? {
        guard needsSession, !guests.admits(request.head.fields), let memoryOwner = request.memoryOwner else {
            return nil
        }
        return AccountID(memoryOwner: memoryOwner)
    }
}

/// An endpoint that anybody may call.
protocol OpenEndpoint: Sendable {
    func respond(to request: Request) async throws -> Response
}

/// An endpoint that anybody may call, with a body too long to be read from just anybody.
protocol LongBodyEndpoint: OpenEndpoint {
    /// Finds out who sends a request before its body is read: once more than the reply does, but only for a long body.
    func identify(_ request: Request) async throws -> MemoryBudget.Owner
}

/// An endpoint that works on the account of the caller's session.
protocol AccountEndpoint: Sendable {
    func respond(to request: Request, authorization: Authorization) async throws -> Response
}
