public import Cryptography

/// Carries one request at a time to one server that has shown one of the pinned keys, and brings what it answers.
///
/// An implementation sends nothing, not even the request line, before it has compared the server's key with the pins.
/// It follows no redirect, keeps no cookie and caches nothing.
public protocol HTTPTransport: Sendable {
    /// Sends a request and waits for the whole reply.
    /// - Throws: ``TransportError``; an error status is a reply.
    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply

    /// Sends a request and waits for the head of the reply. The body comes as it arrives, and no faster than it is read; it
    /// ends with the transport, which has to be kept as long as it is read.
    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream

    /// The host that the transport leads to, without the port; nil for a transport that does not name it.
    var host: String? { get }
}

extension HTTPTransport {
    /// Nil: the transport does not name its host.
    public var host: String? { nil }
}

/// A request, relative to the server that the transport leads to.
public struct HTTPRequest: Sendable {
    /// The request method (RFC 9110 section 9).
    public enum Method: String, Sendable {
        /// Reads.
        case get = "GET"
        /// Reads the head alone.
        case head = "HEAD"
        /// Writes under a name that the client chooses.
        case put = "PUT"
        /// Calls for anything else.
        case post = "POST"
        /// Removes.
        case delete = "DELETE"
    }

    /// The request method.
    public var method: Method
    /// Path and query, percent-encoded, beginning with a slash.
    public var target: String
    /// Fields beside those that belong to the connection and to the body's length.
    public var fields: [(name: String, value: String)]
    /// The session's token, sent as `Authorization: Bearer`.
    public var token: SecureBytes?
    /// The body; zeroed when the last reference goes.
    public var body: SecureBytes?
    /// The time limit of an exchange in which nothing long is sent or received. A slow line has a second more for each
    /// ``minimumRate`` bytes that have moved in either direction. The body of a stream has no such limit.
    public var timeout: Duration
    /// Bytes a second that an exchange longer than ``timeout`` has to move on average: a server may be hostile.
    public var minimumRate = HTTPRequest.slowestLine
    /// The time without a byte from the server after which the connection counts as lost.
    public var silence: Duration
    /// A longer body is refused: a server may be hostile.
    public var replyLimit: Int

    /// The ``minimumRate`` of a request that says nothing else, in bytes a second. The server has a bound of its own.
    public static let slowestLine = 1 << 10

    /// Returns the time limit of an exchange in which so many bytes have moved.
    static func allowance(_ timeout: Duration, _ minimumRate: Int, moved byteCount: Int64) -> Duration {
        timeout + .milliseconds(min(max(byteCount, 0), 1 << 40) * 1_000 / Int64(max(minimumRate, 1)))
    }

    /// More than any reply has that no item and no share is in.
    public static let shortReplyLimit = 1 << 20

    /// Creates a request. Each parameter is the property of its name.
    public init(
        _ method: Method, _ target: String, fields: [(name: String, value: String)] = [], token: SecureBytes? = nil,
        body: SecureBytes? = nil, timeout: Duration = .seconds(120), silence: Duration = .seconds(60),
        replyLimit: Int = HTTPRequest.shortReplyLimit
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.token = token
        self.body = body
        self.timeout = timeout
        self.silence = silence
        self.replyLimit = replyLimit
    }
}

/// Status and fields of a reply.
public struct HTTPReplyHead: Sendable {
    /// The status code (RFC 9110 section 15).
    public let status: Int
    private let fields: [(name: String, value: String)]

    /// Creates the head of a reply, for a transport.
    public init(status: Int, fields: [(name: String, value: String)]) {
        self.status = status
        self.fields = fields
    }

    /// The value of the field, the first when there are several; names are compared without regard to case.
    public subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// True for a status of 2xx.
    var isSuccess: Bool { (200..<300).contains(status) }

    /// The time for which the server asks not to be called again (RFC 9110 section 10.2.3), in whole seconds; nil for a
    /// date.
    public var retryAfter: Duration? {
        self["Retry-After"].flatMap(Int.init).flatMap { (0...86_400).contains($0) ? .seconds($0) : nil }
    }
}

/// A whole reply.
public struct HTTPReply: Sendable {
    /// The status and the fields.
    public let head: HTTPReplyHead
    /// The whole body.
    public internal(set) var body: [UInt8]

    /// Creates a reply, for a transport.
    public init(head: HTTPReplyHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// A reply whose body is still coming.
public struct HTTPReplyStream: Sendable {
    /// The status and the fields.
    public let head: HTTPReplyHead
    /// The body, as it arrives.
    public let body: ReplyBody

    /// Creates a reply with a body that is still arriving, for a transport.
    public init(head: HTTPReplyHead, body: ReplyBody) {
        self.head = head
        self.body = body
    }
}

/// Why there is no reply.
public enum TransportError: Error, Hashable, Sendable {
    /// The server showed a key that is not pinned. Nothing was sent.
    case pinMismatch
    /// The certificate is not trusted: expired, of another name, or not from the anchor. Nothing was sent.
    case untrustedCertificate
    /// There was no connection, so the request was not sent.
    case unreachable
    /// It took too long; nobody knows whether the request was carried out.
    case timedOut
    /// The connection ended; nobody knows whether the request was carried out.
    case connectionLost
    /// The reply is longer than the request allowed, or no HTTP.
    case unacceptableReply
    /// The task was cancelled; nobody knows whether the request was carried out.
    case cancelled
    /// The transport, or a request, was made with something that cannot be used. Nothing was sent.
    case configuration(ConfigurationFault)

    /// True when the same request can succeed later.
    public var isPassing: Bool {
        switch self {
        case .unreachable, .timedOut, .connectionLost: true
        case .pinMismatch, .untrustedCertificate, .unacceptableReply, .cancelled, .configuration: false
        }
    }

    /// True for an error about the server's identity or the app's configuration, which a person has to see to. False where the
    /// server cannot be reached.
    ///
    /// ```swift
    /// catch let error as TransportError where error.isAboutTrust { warn(error.localizedDescription) }
    /// ```
    public var isAboutTrust: Bool {
        switch self {
        case .pinMismatch, .untrustedCertificate, .configuration: true
        case .unreachable, .timedOut, .connectionLost, .unacceptableReply, .cancelled: false
        }
    }
}

/// The part of a transport's configuration, or of a request, that cannot be used.
///
/// ```swift
/// do throws(TransportError) {
///     transport = try CurlTransport(server)
/// } catch .configuration(.pin(let pin)) {
///     fatalError("\(pin) is no pin")
/// }
/// ```
public enum ConfigurationFault: Hashable, Sendable {
    /// The address (``PinnedServer/base``) is not `https://host` or `https://host:port`.
    case address
    /// This pin is not `sha256//` and the base64 of 32 bytes.
    case pin(String)
    /// The anchor (``PinnedServer/anchor``) has no certificate in PEM.
    case certificate
    /// The limit of the rate is too low.
    case rateLimit
    /// The target or a field of a request cannot be sent as it is.
    case request
    /// The system has no resources for a transport, or its library lacks what a transport needs.
    case system
}
