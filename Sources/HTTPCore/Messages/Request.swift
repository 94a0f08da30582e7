/// A whole request, routed and with its body.
public struct Request: Sendable {
    public let id: RequestID
    public var head: RequestHead
    /// Who asks: the peer, or whom a trusted proxy names.
    public var client: ClientAddress
    public var parameters: PathParameters
    public var query: QueryParameters
    public var bodyType: BodyType
    public var body: RequestBody
    /// How many values a JSON body may have.
    public var valueLimit: Int
    /// How work on it lets others have their turn.
    public var pace: Pace

    public init(
        id: RequestID, head: RequestHead, client: ClientAddress, parameters: PathParameters = PathParameters(),
        query: QueryParameters = QueryParameters(), bodyType: BodyType = .none, body: RequestBody = RequestBody(),
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
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// Identifier and method: everything else can hold secrets.
    public var description: String { "Request(\(id) \(head.method))" }
    public var customMirror: Mirror { Mirror(self, children: ["id": id, "method": head.method]) }
}
