/// A whole request, routed and with its body.
public final class Request: Sendable {
    public let id: RequestID
    public let head: RequestHead
    /// Who asks: the peer, or whom a trusted proxy names.
    public let client: ClientAddress
    public let parameters: PathParameters
    public let query: QueryParameters
    public let bodyType: BodyType
    /// Nil when its route takes none.
    public let body: RequestBody?
    /// How many values a JSON body may have.
    public let valueLimit: Int
    /// How work on it lets others have their turn.
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

    /// The trace that it belongs to, for the log alone.
    public var trace: TraceParent? { TraceParent(head.fields) }

    /// The body's bytes; from then on there are none.
    public func takeBody() -> ZeroizingBuffer { body?.take() ?? ZeroizingBuffer() }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// Identifier and method: everything else can hold secrets.
    public var description: String { "Request(\(id) \(head.method))" }
    public var customMirror: Mirror { Mirror(self, children: ["id": id, "method": head.method]) }
}
