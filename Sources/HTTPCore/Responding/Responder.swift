/// The seam between sockets and application.
public protocol Responder: Sendable {
    /// Called as soon as a head has been parsed and before any byte of the body is read: which limits hold, or a
    /// refusal at once (404, 405, 413, 415 and the like).
    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission

    /// The reply to a request that never became one: a framing error, a time-out, overload.
    func refusal(_ refusal: Refusal, from client: ClientAddress) -> Response
}

/// What becomes of a request whose head has been read.
public enum Admission: Sendable {
    /// Read the body within the plan's limits, then ask for the reply.
    case accept(Plan)
    /// Answer at once. The body is not read, so the connection closes when there is one.
    case refuse(Response)
}

/// How one admitted request is carried out.
public struct Plan: Sendable {
    /// The longest body in bytes.
    public var bodyLimit: Int
    /// How long the body may take to arrive.
    public var bodyDeadline: Duration
    /// How long `respond` may take.
    public var handlerDeadline: Duration
    /// Makes the reply from the whole body. Never fails: an error is a reply by then.
    public var respond: @Sendable ([UInt8]) async -> Response

    public init(
        bodyLimit: Int, bodyDeadline: Duration, handlerDeadline: Duration,
        respond: @escaping @Sendable ([UInt8]) async -> Response
    ) {
        self.bodyLimit = bodyLimit
        self.bodyDeadline = bodyDeadline
        self.handlerDeadline = handlerDeadline
        self.respond = respond
    }
}
