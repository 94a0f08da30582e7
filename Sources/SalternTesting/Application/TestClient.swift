public import HTTPCore
internal import Synchronization

/// Sends requests to a ``TestApplication`` in the same process, without a socket.
public struct TestClient: Sendable {
    let application: TestApplication
    /// The token of `Authorization: Bearer`, if any.
    public var token: String?

    /// Returns the same client with another token, or none.
    public func with(token: String?) -> TestClient { TestClient(application: application, token: token) }

    public func get(_ target: String, _ fields: [String: String] = [:]) async throws -> TestResponse {
        try await send(.get, target, fields: fields)
    }

    public func delete(_ target: String, _ fields: [String: String] = [:]) async throws -> TestResponse {
        try await send(.delete, target, fields: fields)
    }

    public func post(
        _ target: String, _ body: JSONValue, _ fields: [String: String] = [:]
    ) async throws -> TestResponse {
        try await send(.post, target, fields: fields, body: Self.document(body))
    }

    public func put(
        _ target: String, _ body: JSONValue, _ fields: [String: String] = [:]
    ) async throws -> TestResponse {
        try await send(.put, target, fields: fields, body: Self.document(body))
    }

    /// Sends any request. A body has the type `application/json` unless `fields` contain another.
    public func send(
        _ method: HTTPMethod, _ target: String, fields: [String: String] = [:], body: [UInt8]? = nil
    ) async throws -> TestResponse {
        var lines = fields.map { (name: $0.key, value: $0.value) }
        if let token { lines.append((name: "Authorization", value: "Bearer \(token)")) }
        if body != nil, fields["Content-Type"] == nil {
            lines.append((name: "Content-Type", value: "application/json"))
        }
        let framing: BodyFraming =
            fields["Transfer-Encoding"] == "chunked"
            ? .chunked : body.map { $0.isEmpty ? .none : .length($0.count) } ?? .none
        let head = RequestHead(method: method, target: target, fields: lines, framing: framing)
        return try await application.respond(to: head, body: body ?? [])
    }

    /// Sends a GET with a stream as reply, and produces it into `body`.
    public func get(
        _ target: String, _ fields: [String: String] = [:], into body: any ResponseBodyWriter
    ) async throws -> TestResponse {
        var lines = fields.map { (name: $0.key, value: $0.value) }
        if let token { lines.append((name: "Authorization", value: "Bearer \(token)")) }
        return try await application.respond(to: RequestHead(method: .get, target: target, fields: lines), into: body)
    }

    /// Sends a GET and reads the reply during its production.
    public func stream(_ target: String, _ fields: [String: String] = [:]) async -> TestStream {
        var lines = fields.map { (name: $0.key, value: $0.value) }
        if let token { lines.append((name: "Authorization", value: "Bearer \(token)")) }
        return await application.stream(RequestHead(method: .get, target: target, fields: lines))
    }

    /// Returns the JSON text of a value.
    public static func document(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.finish()
    }
}

/// A reply, with access to its parts for tests.
public struct TestResponse: Sendable, CustomStringConvertible {
    public let status: Int
    public let fields: HTTPFields
    public let body: [UInt8]
    /// The length that the reply announces.
    public let length: Int?

    init(_ response: Response, body: [UInt8]) {
        status = Int(response.status.code)
        fields = response.fields
        length = response.body.count
        self.body = body
    }

    /// Creates a reply from one line of a reply with many documents.
    public init(line: [UInt8]) {
        status = 200
        fields = HTTPFields()
        body = line
        length = line.count
    }

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the value at a path such as `session.token` or `items.0.id`, or nil without one.
    public subscript(path: String) -> JSONValue? {
        guard var value = try? JSONParser().parse(body) else { return nil }
        for part in path.split(separator: ".") {
            switch value {
            case .object(let object):
                guard let member = object[String(part)] else { return nil }
                value = member
            case .array(let elements):
                guard let index = Int(part), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }

    /// Returns the text at a path.
    public func string(_ path: String) -> String? { try? self[path]?.string() }

    /// Returns the integer at a path.
    public func integer(_ path: String) -> Int? { (try? self[path]?.integer()).flatMap { $0.map(Int.init) } }

    /// Returns the Boolean at a path.
    public func bool(_ path: String) -> Bool? { (try? self[path]?.bool()).flatMap { $0 } }

    /// Returns the elements of the array at a path.
    public func array(_ path: String) -> [JSONValue]? { (try? self[path]?.array()).flatMap { $0 } }

    /// The stable code of a problem.
    public var code: String? { string("code") }

    public var description: String { "\(status) \(text)" }
}

/// Collects the output of a stream, as a whole or piece by piece.
final class CollectedBody: ResponseBodyWriter {
    private let collected = Mutex<[UInt8]>([])
    private let pieces: AsyncStream<[UInt8]>.Continuation?

    /// - Parameter pieces: Also receives each piece.
    init(pieces: AsyncStream<[UInt8]>.Continuation? = nil) {
        self.pieces = pieces
    }

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        if Task.isCancelled { throw ResponseStreamEnded() }
        collected.withLock { $0 += bytes }
        pieces?.yield(bytes)
    }

    /// The bytes written so far.
    var bytes: [UInt8] { collected.withLock { $0 } }
}

/// A reply with a body in production, for tests.
public final class TestStream: Sendable {
    /// Status and fields, without a body.
    public let response: TestResponse
    private let pieces: AsyncStream<[UInt8]>
    private let task: Task<Void, Never>?

    init(response: TestResponse, pieces: AsyncStream<[UInt8]>, task: Task<Void, Never>?) {
        self.response = response
        self.pieces = pieces
        self.task = task
    }

    /// Returns the next piece as text, or nil at the end of the stream. Only one task at a time may call it.
    public func next() async -> String? {
        var iterator = pieces.makeAsyncIterator()
        return await iterator.next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// Cancels the stream as a closed connection does, and waits for the end of the producer.
    public func close() async {
        task?.cancel()
        await task?.value
    }
}
