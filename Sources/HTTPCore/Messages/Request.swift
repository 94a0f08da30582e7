/// A complete and routed request.
public final class Request: Sendable {
    public let id: RequestID
    public let head: RequestHead
    /// The client: the peer, or the address that a trusted proxy names.
    public let client: ClientAddress
    public let parameters: PathParameters
    public let query: QueryParameters
    public let bodyType: BodyType
    /// Nil when its route takes no body.
    public let body: RequestBody?
    /// The maximum number of values in a JSON body.
    public let valueLimit: Int
    /// The suspension points of long work on the request.
    public let pace: Pace

    public init(
        id: RequestID, head: RequestHead, client: ClientAddress, parameters: PathParameters = PathParameters(),
        query: QueryParameters = QueryParameters(), bodyType: BodyType = .none, body: RequestBody? = nil,
        valueLimit: Int = JSONParser.standardValueLimit, pace: Pace = .yielding
    ) {
        self.id = id
        self.head = head
        self.client = client
        self.parameters = parameters
        self.query = query
        self.bodyType = bodyType
        self.body = body
        self.valueLimit = valueLimit
        self.pace = pace
    }

    /// The trace of the request, only for the log.
    public var trace: TraceParent? { TraceParent(head.fields) }

    /// Returns the body's bytes, and leaves none.
    public func takeBody() -> ZeroizingBuffer { body?.take() ?? ZeroizingBuffer() }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// Identifier and method. All other parts can have secrets.
    public var description: String { "Request(\(id) \(head.method))" }
    public var customMirror: Mirror { Mirror(self, children: ["id": id, "method": head.method]) }
}
