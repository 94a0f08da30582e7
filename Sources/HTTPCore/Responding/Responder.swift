/// The interface between sockets and application.
public protocol Responder: Sendable {
    /// Decides about a request after its head is parsed, before its body is read. Returns limits, or a reply such as
    /// 404, 405, 413 or 415.
    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission

    /// Returns the reply to an invalid or unfinished request: a framing error, a time-out, overload.
    /// - Parameter request: The known part of the request. Nil before its head is read.
    func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response

    /// Returns the reply to an unreadable or incomplete head.
    /// - Parameter head: The part that was found. Nil without a path.
    func refusal(_ refusal: Refusal, ofUnread head: UnreadHead?, from client: ClientAddress) -> Response
}

extension Responder {
    public func refusal(_ refusal: Refusal, ofUnread head: UnreadHead?, from client: ClientAddress) -> Response {
        self.refusal(refusal, of: nil, from: client)
    }
}

/// Selects the page that may read a rejection, by parts of the rejected head. They are unchecked.
public struct UnreadHead: Sendable {
    /// The path in the request, without its query.
    public let path: String
    /// The value of `Origin`, if there is exactly one such field.
    public let origin: String?

    public init(path: String, origin: String?) {
        self.path = path
        self.origin = origin
    }
}

/// The data that a connection has about an unanswered request.
public struct KnownRequest: Sendable {
    public let head: RequestHead
    /// The sender, if it was identified before the body was read.
    public var memoryOwner: MemoryBudget.Owner?

    public init(head: RequestHead, memoryOwner: MemoryBudget.Owner? = nil) {
        self.head = head
        self.memoryOwner = memoryOwner
    }
}

/// The decision about a request after its head is read.
public enum Admission: Sendable {
    /// Read the body within the plan's limits, then request the reply.
    case accept(RequestPlan)
    /// Reply at once. The body is not read, so the connection closes if there is one.
    case refuse(Response)
}

/// The decision about a body that is too long for unidentified senders.
public enum Identification: Sendable {
    /// The sender may send it. Its memory is charged to this sender.
    case memoryOwner(MemoryBudget.Owner)
    /// The sender may not send it. The body is not read.
    case refuse(Response)
}

/// The execution of one admitted request.
public struct RequestPlan: Sendable {
    /// The maximum length of the body in bytes.
    public var bodyLimit: Int
    /// The memory of a body in relation to its length.
    public var memory: MemoryFactor
    /// The time limit of `respond`, and of ``identify``.
    public var handlerDeadline: Duration
    /// The client: the peer, or the address that a trusted proxy names. Nil for the peer.
    public var client: ClientAddress?
    /// Identifies the sender before a long body is read. Nil when all bodies of the route are short, or any client may
    /// send them.
    public var identify: (@Sendable () async -> Identification)?
    /// Receives the whole body before `respond` is called. Nil without a body.
    public var body: RequestBody?
    /// Produces the reply. It never fails, because errors are replies.
    public var respond: @Sendable () async -> Response

    public init(
        bodyLimit: Int, memory: MemoryFactor = .none, handlerDeadline: Duration, client: ClientAddress? = nil,
        identify: (@Sendable () async -> Identification)? = nil, body: RequestBody? = nil,
        respond: @escaping @Sendable () async -> Response
    ) {
        self.bodyLimit = bodyLimit
        self.memory = memory
        self.handlerDeadline = handlerDeadline
        self.client = client
        self.identify = identify
        self.body = body
        self.respond = respond
    }
}
