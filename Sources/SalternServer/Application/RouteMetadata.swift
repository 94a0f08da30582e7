internal import HTTPCore

/// The properties of a route besides its handler.
public struct RouteMetadata: Sendable {
    /// Method and template, as the name in logs and metrics.
    public let name: String
    /// The bucket of the client address that a request takes from. Nil for routes of negligible cost.
    public let rateClass: RateClass?
    /// True if a session token is required.
    public let needsSession: Bool
    /// Callers without a session.
    public let guests: GuestRule
    /// The accepted query parameters. All others are rejected.
    public let query: [String]
    /// The accepted query parameters with a body of bytes, which has no members.
    public let bytesQuery: [String]
    /// True if the route ignores all queries: for pages, whose addresses get parameters from other programs.
    public let ignoresQuery: Bool
    /// Deadline of the reply.
    public let handlerDeadline: Duration
    /// Checks the sender of a long body before the body is read. Nil for routes with short bodies. Throws the error to
    /// return.
    let identify: (@Sendable (Request) async throws -> MemoryBudget.Owner)?

    /// Returns the account of the session that was checked before the body was read. Nil for a share's manager.
    func account(of request: KnownRequest) -> AccountID? {
        guard needsSession, !guests.admits(request.head.fields), let memoryOwner = request.memoryOwner else {
            return nil
        }
        return AccountID(memoryOwner: memoryOwner)
    }
}

/// An endpoint without authentication.
protocol OpenEndpoint: Sendable {
    func respond(to request: Request) async throws -> Response
}

/// An endpoint without authentication that checks the sender of a long body.
protocol LongBodyEndpoint: OpenEndpoint {
    /// Checks the sender before the body is read. The reply repeats the check; the extra cost arises for long bodies
    /// only.
    func identify(_ request: Request) async throws -> MemoryBudget.Owner
}

/// An endpoint on the account of the caller's session.
protocol AccountEndpoint: Sendable {
    func respond(to request: Request, authorization: Authorization) async throws -> Response
}

/// An endpoint on the items of one owner.
protocol ItemEndpoint: Sendable {
    func respond(to request: Request, items: ItemAccess) async throws -> Response
}

/// Callers without a session on a route of the caller's account.
public enum GuestRule: Sendable, Equatable {
    case nobody
    /// Callers with a share's manage token.
    case managersOfShares
    /// Callers without any token, with a limit of the body in bytes.
    case strangers(bodyLimit: Int)

    /// Returns true if a request with these fields comes from a guest.
    func admits(_ fields: RequestFields) -> Bool {
        switch self {
        case .nobody: false
        case .managersOfShares: PresentedManageToken(fields) != nil
        case .strangers: !fields.contains("authorization")
        }
    }

    /// The bucket that a guest's request takes from.
    var rateClass: RateClass? {
        switch self {
        case .nobody: nil
        case .managersOfShares: .share
        case .strangers: .anonymousShare
        }
    }

    /// Returns the maximum body of a guest in bytes, on a route whose own limit is `limit`.
    func bodyLimit(_ limit: Int) -> Int {
        if case .strangers(let own) = self { min(own, limit) } else { limit }
    }
}
