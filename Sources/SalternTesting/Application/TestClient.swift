public import HTTPCore

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
