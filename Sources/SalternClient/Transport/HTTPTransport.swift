public import Cryptography

/// Sends requests to one server with a pinned key, and returns the replies.
///
/// An implementation compares the server's key with the pins before it sends anything, even the request line. It
/// follows no redirect, keeps no cookie and caches nothing.
public protocol HTTPTransport: Sendable {
    /// Sends a request and waits for the whole reply.
    /// - Throws: ``TransportError``; an error status is a reply.
    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply

    /// Sends a request and waits for the head of the reply. The body arrives no faster than it is read. It ends with
    /// the transport, which has to be kept while the body is read.
    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream

    /// The host that the transport leads to, without the port; nil for a transport that does not name it.
    var host: String? { get }
}

extension HTTPTransport {
    /// Nil, for a transport that does not name its host.
    public var host: String? { nil }
}

/// A request, relative to the transport's server.
public struct HTTPRequest: Sendable {
    /// The request method (RFC 9110 section 9).
    public enum Method: String, Sendable {
        /// Reads a resource.
        case get = "GET"
        /// Reads the head alone.
        case head = "HEAD"
        /// Writes under a name that the client chooses.
        case put = "PUT"
        /// Any other call.
        case post = "POST"
        /// Changes a part of a resource.
        case patch = "PATCH"
        /// Removes a resource.
        case delete = "DELETE"
    }

    /// The request method.
    public var method: Method
    /// Path and query, percent-encoded, beginning with a slash.
    public var target: String
    /// Fields except those of the connection and of the body's length.
    public var fields: [(name: String, value: String)]
    /// The session's token, sent as `Authorization: Bearer`.
    public var token: SecureBytes?
    /// The body, which is zeroed with its last reference.
    public var body: SecureBytes?
    /// The time limit of a short exchange. Each ``minimumRate`` bytes that have moved in either direction add one
    /// second. The body of a stream has no such limit.
    public var timeout: Duration
    /// The average rate of an exchange that is longer than ``timeout``, in bytes a second, against a hostile server.
    public var minimumRate = HTTPRequest.slowestLine
    /// The time without a byte from the server after which the connection is considered lost.
    public var silence: Duration
    /// The longest body that is accepted, in bytes, against a hostile server.
    public var replyLimit: Int

    /// The default ``minimumRate``, in bytes a second. The server has its own limit.
    public static let slowestLine = 1 << 10

    /// Returns the time limit of an exchange in which this number of bytes has moved.
    static func allowance(_ timeout: Duration, _ minimumRate: Int, moved byteCount: Int64) -> Duration {
        timeout + .milliseconds(min(max(byteCount, 0), 1 << 40) * 1_000 / Int64(max(minimumRate, 1)))
    }

    /// The limit of replies without items and shares, in bytes.
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

    /// The server's minimum wait before the next request (RFC 9110 section 10.2.3), in whole seconds; nil for a date.
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

/// A reply whose body is still arriving.
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

/// The reason for which there is no reply.
public enum TransportError: Error, Hashable, Sendable {
    /// The server's key is not pinned. Nothing was sent.
    case pinMismatch
    /// The certificate is not trusted: expired, of another name, or not from the anchor. Nothing was sent.
    case untrustedCertificate
    /// There was no connection, so the request was not sent.
    case unreachable
    /// The exchange took too long; the request may have been carried out.
    case timedOut
    /// The connection ended; the request may have been carried out.
    case connectionLost
    /// The reply is longer than the request allowed, or not HTTP.
    case unacceptableReply
    /// The task was cancelled; the request may have been carried out.
    case cancelled
    /// The transport, or a request, was created with an unusable value. Nothing was sent.
    case configuration(ConfigurationFault)

    /// True when the same request can succeed later.
    public var isPassing: Bool {
        switch self {
        case .unreachable, .timedOut, .connectionLost: true
        case .pinMismatch, .untrustedCertificate, .unacceptableReply, .cancelled, .configuration: false
        }
    }

    /// True for an error about the server's identity or the app's configuration, which a person has to correct. False
    /// when the server is unreachable.
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
    /// The anchor (``PinnedServer/anchor``) contains no certificate in PEM.
    case certificate
    /// The limit of the rate is too low.
    case rateLimit
    /// The target or a field of a request contains characters that cannot be sent.
    case request
    /// The system has no resources for a transport, or its library lacks what a transport needs.
    case system
}

/// Limits the size of a reply's head and trailers, against a hostile server.
struct FieldBudget {
    /// The maximum number of bytes of all fields of a reply together.
    static let limit = 256 << 10

    private var count = 0

    /// Returns true when this number of further bytes is within the limit.
    mutating func take(_ bytes: Int) -> Bool {
        count += bytes
        return count <= Self.limit
    }
}
