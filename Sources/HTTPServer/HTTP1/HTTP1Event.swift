public import HTTPCore

/// What the parser finds in the bytes of a connection, in the order of the bytes.
public enum HTTP1Event: Sendable {
    /// A request begins.
    case head(RequestHead)
    /// The next bytes of its body, decoded; never empty. How a body is cut into these is not significant.
    case body(ZeroizingBuffer)
    /// The request is complete; the next one may follow.
    case end
}
