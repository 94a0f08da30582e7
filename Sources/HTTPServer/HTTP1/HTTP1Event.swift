public import HTTPCore

/// An element in the bytes of a connection, in the order of the bytes.
public enum HTTP1Event: Sendable {
    /// The head of a request.
    case head(RequestHead)
    /// The next bytes of its body, decoded, never empty. The division of a body into these is not significant.
    case body(ZeroizingBuffer)
    /// The end of the request. The next one may follow.
    case end
}
