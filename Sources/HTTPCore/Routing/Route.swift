/// Handles a routed request with its complete body, and returns the reply.
public typealias Handler = @Sendable (Request) async -> Response

/// One row of the table of routes.
public final class Route<Metadata: Sendable>: Sendable {
    public let method: HTTPMethod
    public let template: PathTemplate
    public let body: BodyRule
    /// The application's data about the route, which it uses before it calls the handler.
    public let metadata: Metadata
    public let handler: Handler

    public init(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, metadata: Metadata, handler: @escaping Handler
    ) {
        self.method = method
        self.template = PathTemplate(template)
        self.body = body
        self.metadata = metadata
        self.handler = handler
    }
}

extension Route where Metadata == Void {
    public convenience init(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, handler: @escaping Handler
    ) {
        self.init(method, template, body: body, metadata: (), handler: handler)
    }
}
