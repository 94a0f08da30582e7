/// What answers a request that was routed and has its body.
public typealias Handler = @Sendable (Request) async -> Response

/// One line of the table of routes.
public final class Route<Metadata: Sendable>: Sendable {
    public let method: HTTPMethod
    public let template: PathTemplate
    public let body: BodyRule
    /// What the application wants to know about the route before it calls the handler.
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
