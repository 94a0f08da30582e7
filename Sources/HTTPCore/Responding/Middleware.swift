/// What answers a request: an endpoint, or an endpoint with middleware around it.
public typealias Handler = @Sendable (Request) async throws -> Response

/// A step around every handler it is composed with: it may change the request, answer itself, or change the reply.
public protocol Middleware: Sendable {
    func respond(to request: Request, next: Handler) async throws -> Response
}

extension [any Middleware] {
    /// The chain as one handler, the first middleware outermost. Composed once, at start, not for each request.
    public func composed(around handler: @escaping Handler) -> Handler {
        reversed().reduce(handler) { next, middleware in
            { request in try await middleware.respond(to: request, next: next) }
        }
    }
}
