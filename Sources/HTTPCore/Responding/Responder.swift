/// The seam between sockets and application.
public protocol Responder: Sendable {
    /// Called as soon as a head has been parsed and before any byte of the body is read: which limits hold, or a
    /// refusal at once (404, 405, 413, 415 and the like).
    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission

    /// The reply to a request that never became one or could not be finished: a framing error, a time-out, overload.
    /// - Parameter request: What is known of it; nil before its head has been read.
    func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response
}

/// What a connection knows of a request that is not answered yet.
public struct KnownRequest: Sendable {
    public let head: RequestHead
    /// Who sends it, when that was found out before its body was read.
    public var memoryOwner: MemoryBudget.Owner?

    public init(head: RequestHead, memoryOwner: MemoryBudget.Owner? = nil) {
        self.head = head
        self.memoryOwner = memoryOwner
    }
}

/// What becomes of a request whose head has been read.
public enum Admission: Sendable {
    /// Read the body within the plan's limits, then ask for the reply.
    case accept(Plan)
    /// Answer at once. The body is not read, so the connection closes when there is one.
    case refuse(Response)
}

/// Who sends a body that is too long to be read from just anybody.
public enum Identification: Sendable {
    /// Somebody who may send it, and whose its memory is.
    case memoryOwner(MemoryBudget.Owner)
    /// Nobody who may: answer so. The body is not read.
    case refuse(Response)
}

/// How one admitted request is carried out.
public struct Plan: Sendable {
    /// The longest body in bytes.
    public var bodyLimit: Int
    /// What a body takes of memory, by its length.
    public var memory: MemoryFactor
    /// How long `respond` may take, and ``identify``.
    public var handlerDeadline: Duration
    /// Who asks: the peer, or whom a trusted proxy names; nil for the peer.
    public var client: ClientAddress?
    /// Finds out who asks before a long body is read; nil when every body of the route is short, or anybody may send it.
    public var identify: (@Sendable () async -> Identification)?
    /// Where the whole body is put before `respond` is called; nil when there is none.
    public var body: RequestBody?
    /// Makes the reply. Never fails: an error is a reply by then.
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
