public import Cryptography

/// The reason for the end of a TLS connection. Waiting to read or write is no error.
public enum TLSError: Error, Hashable, Sendable {
    /// The peer closed the connection without TLS's notification, so its data may be truncated.
    case closedWithoutNotification
    /// The socket failed with this `errno`.
    case socket(errno: Int32)
    /// The peers do not agree on TLS: wrong version, no common suite, invalid bytes, or an alert.
    case protocolViolation(OpenSSLError)
    /// The server's key has none of the pins that the client expects.
    case pinMismatch
    /// The connection has already failed and cannot be used again.
    case failedBefore
}

extension TLSError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .closedWithoutNotification: "the peer closed the connection without a TLS close_notify"
        case .socket(let errno): "the socket failed: \(SystemError.text(errno))"
        case .protocolViolation(let error): "TLS failed: \(error)"
        case .pinMismatch: "the server's key has none of the expected pins"
        case .failedBefore: "the TLS connection failed earlier"
        }
    }
}
