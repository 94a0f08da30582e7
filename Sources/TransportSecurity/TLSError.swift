public import Cryptography

/// Why a TLS connection is over. Wanting to read or write is not an error.
public enum TLSError: Error, Hashable, Sendable {
    /// The peer closed the connection without saying so in TLS, so that what it sent may be cut off.
    case closedWithoutNotification
    /// The socket failed; `errno` of the failed call.
    case socket(errno: Int32)
    /// The peer does not speak TLS as we do: wrong version, no common suite, garbage, or an alert.
    case protocolViolation(OpenSSLError)
    /// The server's key has none of the pins that the client expects.
    case pinMismatch
    /// The connection failed earlier and cannot be used again.
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
