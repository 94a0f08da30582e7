internal import Cryptography
internal import Foundation

/// The server's API: one method for each operation of openapi.yaml, under its name.
///
/// A method sends one request and does not repeat it; see ``Retries``. Methods that need a session take its token.
public struct SalternAPI: Sendable {
    private let transport: any HTTPTransport
    /// The server's clock, from its last reply.
    let clock = ServerClock()

    /// The limit of a reply with items, a share or all sessions, in bytes. The longest item has 16 MiB in base64.
    static let longReplyLimit = 24 << 20

    /// Creates the calls of one server.
    /// - Parameter transport: The connection to the server.
    public init(_ transport: any HTTPTransport) { self.transport = transport }

    // MARK: Calls

    /// Sends a request and decodes the JSON of its reply.
    func call<Reply: Decodable>(_ request: HTTPRequest, as type: Reply.Type = Reply.self) async throws(APIError)
        -> Reply
    {
        var reply = try await send(request)
        guard type is any HoldsTokens.Type else { return try Self.decode(type, reply.body) }
        let tokens = SecretJSON.take(from: &reply.body)
        return try Self.decode(type, reply.body, tokens)
    }

    /// Sends a request and ignores the body of its reply.
    func call(_ request: HTTPRequest) async throws(APIError) {
        _ = try await send(request)
    }

    /// Sends a request.
    /// - Throws: The problem of a reply whose status is neither 2xx nor in `accepting`.
    func send(_ request: HTTPRequest, accepting: Set<Int> = []) async throws(APIError) -> HTTPReply {
        try Self.checkSession(of: request)
        let reply: HTTPReply
        do throws(TransportError) { reply = try await transport.send(request) } catch { throw .transport(error) }
        clock.note(reply.head)
        guard reply.body.count <= request.replyLimit else { throw .transport(.unacceptableReply) }
        guard reply.head.isSuccess || accepting.contains(reply.head.status) else {
            throw Self.problem(reply)
        }
        return reply
    }

    /// Sends a request whose reply is read as it arrives.
    func stream(_ request: HTTPRequest) async throws(APIError) -> HTTPReplyStream {
        try Self.checkSession(of: request)
        let stream: HTTPReplyStream
        do throws(TransportError) { stream = try await transport.stream(request) } catch { throw .transport(error) }
        if stream.head.isSuccess { return stream }
        var body: [UInt8] = []
        do {
            for try await piece in stream.body {
                body += piece
                if body.count > HTTPRequest.shortReplyLimit { break }
            }
        } catch {
            throw .transport(error)
        }
        guard body.count <= HTTPRequest.shortReplyLimit else { throw .unexpectedReply }
        throw Self.problem(HTTPReply(head: stream.head, body: body))
    }

    /// Rejects the token ``Token/missing`` with the error of an ended session.
    private static func checkSession(of request: HTTPRequest) throws(APIError) {
        if request.token?.isEmpty == true { throw .problem(.sessionMissing) }
    }

    private static func problem(_ reply: HTTPReply) -> APIError {
        guard var problem = try? decode(Problem.self, reply.body), problem.status == reply.head.status else {
            return .unexpectedReply
        }
        problem.retryAfter = reply.head.retryAfter
        return .problem(problem)
    }

    // MARK: JSON

    static func decode<Value: Decodable>(
        _ type: Value.Type, _ body: [UInt8], _ tokens: SecretJSON.Taken? = nil
    ) throws(APIError) -> Value {
        guard JSONBounds.include(body) else { throw .unexpectedReply }
        let decoder = JSONDecoder()
        if let tokens { decoder.userInfo[SecretJSON.Taken.key] = tokens }
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = Self.date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no RFC 3339 time")
            }
            return date
        }
        do { return try decoder.decode(type, from: Data(body)) } catch { throw .unexpectedReply }
    }

    private static func date(_ text: String) -> Date? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))
        return try? style.parse(text)
    }

    /// Returns the body of a request with a JSON value.
    static func json(_ value: some Encodable) throws(APIError) -> SecureBytes {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.withoutEscapingSlashes]
        do { return try SecretJSON.encode(value, with: encoder) } catch { throw .unexpectedReply }
    }

    /// Creates a request with a JSON body.
    static func request(
        _ method: HTTPRequest.Method, _ target: String, token: Token? = nil,
        fields: [(name: String, value: String)] = [], replyLimit: Int = HTTPRequest.shortReplyLimit,
        _ body: some Encodable
    ) throws(APIError) -> HTTPRequest {
        HTTPRequest(
            method, target, fields: fields + [("Content-Type", "application/json")], token: token?.text,
            body: try json(body), replyLimit: replyLimit)
    }

    /// Returns a path with a query of the members that are not nil.
    static func target(_ path: String, _ query: [(name: String, value: String?)]) -> String {
        let members = query.compactMap { name, value in value.map { "\(name)=\(escaped($0))" } }
        return members.isEmpty ? path : path + "?" + members.joined(separator: "&")
    }

    /// Percent-encodes everything but unreserved characters (RFC 3986 section 2.3).
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.append(Character(Unicode.Scalar(byte)))
            default:
                escaped += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return escaped
    }
}
