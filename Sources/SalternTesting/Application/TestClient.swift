public import HTTPCore

/// Sends requests to a ``TestApplication`` in the same process: everything but the socket.
public struct TestClient: Sendable {
    let application: TestApplication
    /// Sent as `Authorization: Bearer` when there is one.
    public var token: String?

    /// The same client with another token, or none.
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

    /// Sends any request. A body is sent as `application/json` unless `fields` say otherwise.
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

    /// Sends a GET whose reply is a stream, and produces it into `body`.
    public func get(
        _ target: String, _ fields: [String: String] = [:], into body: any ResponseBodyWriter
    ) async throws -> TestResponse {
        var lines = fields.map { (name: $0.key, value: $0.value) }
        if let token { lines.append((name: "Authorization", value: "Bearer \(token)")) }
        return try await application.respond(to: RequestHead(method: .get, target: target, fields: lines), into: body)
    }

    /// Sends a GET and reads the reply while it is produced.
    public func stream(_ target: String, _ fields: [String: String] = [:]) async -> TestStream {
        var lines = fields.map { (name: $0.key, value: $0.value) }
        if let token { lines.append((name: "Authorization", value: "Bearer \(token)")) }
        return await application.stream(RequestHead(method: .get, target: target, fields: lines))
    }

    /// The JSON text of a value.
    public static func document(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.finish()
    }
}
