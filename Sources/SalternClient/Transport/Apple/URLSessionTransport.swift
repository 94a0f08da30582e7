internal import Cryptography
internal import Foundation
internal import Security

/// ``HTTPTransport`` on the system's URL loading: TLS 1.3, pinned public keys, no cookies, caches or redirects.
///
/// The server's key is compared with the pins in the system's trust callback, before anything is sent. The system
/// copies bodies and tokens into its own memory, which is not zeroed. It may discard a reply's trailers.
///
/// Example: "iOS and macOS" in docs/kit.md.
public final class URLSessionTransport: HTTPTransport {
    /// The server of a transport.
    public typealias Server = PinnedServer

    private let base: String
    private let session: URLSession
    private let events: URLSessionEvents

    /// Creates a transport, without a connection.
    /// - Throws: ``TransportError/configuration(_:)`` with the part that is malformed: the base, a pin or the anchor.
    public convenience init(_ server: Server) throws(TransportError) {
        if let fault = server.fault { throw .configuration(fault) }
        guard let trust = ServerTrust(server) else { throw .configuration(.certificate) }
        self.init(to: server.base, trust)
    }

    /// Creates a transport for tests with a server without TLS.
    init(to base: String, _ trust: ServerTrust) {
        self.base = base
        events = URLSessionEvents(trust)
        session = URLSession(configuration: Self.configuration, delegate: events, delegateQueue: nil)
    }

    deinit { session.invalidateAndCancel() }

    public var host: String? { PinnedServer.host(of: base) }

    private static var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpMaximumConnectionsPerHost = 8
        configuration.waitsForConnectivity = false
        return configuration
    }

    public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        let transfer = try transfer(request, limit: request.replyLimit)
        let deadline = Self.deadline(of: transfer, request)
        defer { deadline.cancel() }
        let head = try await transfer.run()
        return HTTPReply(head: head, body: transfer.takeBody())
    }

    /// Ends a transfer that takes longer than its transferred bytes allow.
    private static func deadline(of transfer: URLSessionTransfer, _ request: HTTPRequest) -> Task<Void, any Error> {
        let begin = ContinuousClock.now
        let (timeout, rate) = (request.timeout, request.minimumRate)
        return Task {
            while true {
                let left =
                    HTTPRequest.allowance(timeout, rate, moved: transfer.movedByteCount) - (ContinuousClock.now - begin)
                if left <= .zero { return transfer.end(.failure(.timedOut)) }
                try await Task.sleep(for: left)
            }
        }
    }

    public func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        let transfer = try transfer(request, limit: nil)
        let body = ReplyBody(
            onRoom: { transfer.goOn() }, onAbandoned: { transfer.end(.failure(.cancelled)) })
        transfer.connect(body)
        let deadline = Self.deadline(of: transfer, request)
        var isOpenEnded = true
        // The body of an error reply has the limit of its head.
        defer { if isOpenEnded { deadline.cancel() } }
        let head = try await transfer.run()
        isOpenEnded = head.isSuccess
        return HTTPReplyStream(head: head, body: body)
    }

    private func transfer(_ request: HTTPRequest, limit: Int?) throws(TransportError) -> URLSessionTransfer {
        guard let request = Self.request(request, base) else { throw .configuration(.request) }
        let task = session.dataTask(with: request)
        let transfer = URLSessionTransfer(task, limit: limit)
        events.add(transfer, for: task)
        return transfer
    }

    /// Converts a request.
    /// - Returns: nil when the URL or a field is malformed.
    private static func request(_ request: HTTPRequest, _ base: String) -> URLRequest? {
        guard let url = URL(string: base + request.target, encodingInvalidCharacters: false) else { return nil }
        var fields = request.fields
        if let token = request.token {
            fields.append(("Authorization", token.withUnsafeBytes { "Bearer " + String(decoding: $0, as: UTF8.self) }))
        }
        // Otherwise the system requests and decodes compressed replies.
        fields.append(("Accept-Encoding", "identity"))
        var made = URLRequest(
            url: url, cachePolicy: .reloadIgnoringLocalCacheData,
            timeoutInterval: max(1, Double(request.silence.components.seconds)))
        made.httpMethod = request.method.rawValue
        made.httpShouldHandleCookies = false
        made.httpBody = request.body?.withUnsafeBytes { Data($0) }
        for (name, value) in fields {
            guard (name + value).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return nil }
            made.setValue(value, forHTTPHeaderField: name)
        }
        return made
    }
}
