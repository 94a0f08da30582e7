internal import Cryptography
internal import Foundation

/// The server's API: one method for each operation of openapi.yaml, under its name.
///
/// A method sends one request and does not repeat it; see ``Retries``. Methods that need a session take its token.
public struct SalternAPI: Sendable {
    private let transport: any HTTPTransport
    /// The server's clock, from its last reply.
    let clock = ServerClock()
    /// The owner of the items.
    private var owner = ItemOwner.account
    /// The field of writes to a shared vault.
    private var headField: [(name: String, value: String)] = []

    /// The limit of a reply with items, a share or all sessions, in bytes. The longest item has 16 MiB in base64. The
    /// limit of a reply and ``JSONBounds`` also bound its lists.
    private static let longReplyLimit = 24 << 20

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
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an RFC 3339 time")
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

extension SalternAPI {
    /// Returns the same API for the items of an owner. It concerns the calls whose paths begin with `/v1/items` and
    /// `/v1/changes`, without the stream.
    /// - Parameter head: The number of the latest known entry of a shared vault's log, for writes.
    func of(_ owner: ItemOwner, head: Int64? = nil) -> SalternAPI {
        var api = self
        api.owner = owner
        api.headField = head.map { [("Vault-Head", String($0))] } ?? []
        return api
    }

    private static func replyLimit(_ isMetaOnly: Bool) -> Int {
        isMetaOnly ? HTTPRequest.shortReplyLimit : longReplyLimit
    }

    /// Returns a page of items (`GET /v1/items`).
    /// - Parameter isMetaOnly: Omits titles and bodies.
    public func listItems(
        collection: String? = nil, isMetaOnly: Bool = false, limit: Int? = nil, page: String? = nil, _ token: Token
    ) async throws(APIError) -> ItemPage {
        let query = [
            ("collection", collection), ("fields", isMetaOnly ? "meta" : nil), ("limit", limit.map(String.init)),
            ("page", page),
        ]
        return try await call(
            HTTPRequest(
                .get, Self.target("\(owner.path)/items", query), token: token.text,
                replyLimit: Self.replyLimit(isMetaOnly)))
    }

    /// Returns the limits and the usage of the owner's items, from the account or the shared vault.
    func getUsage(_ token: Token) async throws(APIError) -> ItemUsage {
        try await call(HTTPRequest(.get, owner == .account ? "/v1/account" : owner.path, token: token.text))
    }

    /// Returns one item (`GET /v1/items/{id}`).
    public func getItem(_ id: ItemID, _ token: Token) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(.get, "\(owner.path)/items/\(id)", token: token.text, replyLimit: Self.longReplyLimit))
    }

    /// Creates or replaces an item (`PUT /v1/items/{id}`).
    public func putItem(
        _ id: ItemID, _ content: ItemContent, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            Self.request(
                .put, "\(owner.path)/items/\(id)", token: token, fields: [precondition.field] + headField,
                replyLimit: Self.longReplyLimit,
                content))
    }

    /// Returns the sealed body alone (`GET /v1/items/{id}/body`).
    public func getItemBody(_ id: ItemID, _ token: Token) async throws(APIError) -> HTTPReplyStream {
        try await stream(HTTPRequest(.get, "\(owner.path)/items/\(id)/body", token: token.text))
    }

    /// Creates or replaces an item whose sealed body is sent as bytes (`PUT /v1/items/{id}/body`).
    public func putItemBody(
        _ id: ItemID, _ content: ItemContent, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        let query = [
            ("format", content.format), ("collection", content.collection),
            ("iterations", content.iterations.map(String.init)),
            ("title", content.title.map { Base64URL.encodeToString($0.bytes) }),
        ]
        let fields = [precondition.field, ("Content-Type", "application/octet-stream")] + headField
        return try await call(
            HTTPRequest(
                .put, Self.target("\(owner.path)/items/\(id)/body", query), fields: fields, token: token.text,
                body: SecureBytes(copying: content.body.bytes), replyLimit: Self.longReplyLimit))
    }

    /// Deletes an item and returns its tombstone (`DELETE /v1/items/{id}`).
    public func deleteItem(
        _ id: ItemID, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .delete, "\(owner.path)/items/\(id)", fields: [precondition.field] + headField, token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Restores a deleted item (`POST /v1/items/{id}/restore`).
    public func restoreItem(
        _ id: ItemID, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .post, "\(owner.path)/items/\(id)/restore", fields: [precondition.field] + headField, token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Lists older versions, the latest first, without their sealed bytes (`GET /v1/items/{id}/versions`).
    public func listVersions(
        _ id: ItemID, limit: Int? = nil, page: String? = nil, _ token: Token
    ) async throws(APIError) -> VersionPage {
        let query = [("limit", limit.map(String.init)), ("page", page)]
        return try await call(
            HTTPRequest(.get, Self.target("\(owner.path)/items/\(id)/versions", query), token: token.text))
    }

    /// Returns an older version of an item (`GET /v1/items/{id}/versions/{revision}`).
    public func getVersion(_ id: ItemID, _ revision: Revision, _ token: Token) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .get, "\(owner.path)/items/\(id)/versions/\(revision.number)", token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Applies all operations or none (`POST /v1/items/batch`).
    public func writeBatch(_ operations: [BatchOperation], _ token: Token) async throws(APIError) -> BatchResult {
        struct Body: Encodable { let operations: [BatchOperation] }
        return try await call(
            Self.request(
                .post, "\(owner.path)/items/batch", token: token, fields: headField, Body(operations: operations)))
    }

    /// Returns a page of changes (`GET /v1/changes`).
    /// - Parameters:
    ///   - cursor: The cursor of the previous page; nil for all items.
    ///   - collection: Nil for all collections. A cursor is valid only for the collection with which it was requested.
    ///   - isMetaOnly: Omits titles and bodies.
    ///   - reportsDeletions: Includes all tombstones in a listing without a cursor, for a device that already stores
    ///     items.
    public func listChanges(
        since cursor: String? = nil, collection: String? = nil, isMetaOnly: Bool = false, limit: Int? = nil,
        reportsDeletions: Bool = false, _ token: Token
    ) async throws(APIError) -> ChangePage {
        let query = [
            ("since", cursor), ("collection", collection), ("fields", isMetaOnly ? "meta" : nil),
            ("limit", limit.map(String.init)), ("tombstones", reportsDeletions ? "all" : nil),
        ]
        let target = Self.target("\(owner.path)/changes", query)
        return try await call(
            HTTPRequest(.get, target, token: token.text, replyLimit: Self.replyLimit(isMetaOnly)))
    }

    /// Returns a stream with one event for each change of the account's revision (`GET /v1/changes/stream`).
    /// - Parameter lastEventID: The id of the last received event; nil for an immediate event.
    public func streamChanges(lastEventID: String? = nil, _ token: Token) async throws(APIError) -> ServerSentEvents {
        var fields = [(name: "Accept", value: "text/event-stream")]
        if let lastEventID { fields.append(("Last-Event-ID", lastEventID)) }
        return ServerSentEvents(
            try await stream(HTTPRequest(.get, "/v1/changes/stream", fields: fields, token: token.text)).body)
    }
}

/// An item that is sealed with the new key.
public struct StagedItem: Encodable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The revision of the item that was opened.
    public let ifRevision: Revision
    /// The format of the newly sealed bytes.
    public let format: String
    /// The iterations of the item's own sealing, for formats that derive a key from a password.
    public let iterations: Int?
    /// The newly sealed title; nil for an item without one.
    public let title: Base64Bytes?
    /// The newly sealed body.
    public let body: Base64Bytes

    /// Creates a staged item from newly sealed bytes.
    public init(
        id: ItemID, ifRevision: Revision, format: String, iterations: Int? = nil, title: [UInt8]?, body: [UInt8]
    ) {
        self.id = id
        self.ifRevision = ifRevision
        self.format = format
        self.iterations = iterations
        self.title = title.map(Base64Bytes.init)
        self.body = Base64Bytes(body)
    }
}

extension SalternAPI {
    /// Opens a rotation (`POST /v1/rotations`).
    public func openRotation(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) -> RotationReply {
        try await call(
            Self.request(.post, "/v1/rotations", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// Stages items of a rotation (`PUT /v1/rotations/{id}/items`).
    public func stageItems(
        _ items: [StagedItem], in rotation: RotationID, _ token: Token
    ) async throws(APIError) -> StagedReply {
        struct Body: Encodable { let items: [StagedItem] }
        return try await call(
            Self.request(.put, "/v1/rotations/\(rotation)/items", token: token, Body(items: items)))
    }

    /// Commits a rotation, which can take minutes (`POST /v1/rotations/{id}/commit`).
    public func commitRotation(
        _ rotation: RotationID, _ new: NewCredential, current: SecretBytes, _ token: Token
    ) async throws(APIError) -> RotationCommitReply {
        var request = try Self.request(
            .post, "/v1/rotations/\(rotation)/commit", token: token, CredentialBody(new, current: current))
        request.timeout = .seconds(620)
        request.silence = .seconds(620)
        // The problem lists each item that is not staged yet.
        request.replyLimit = Self.longReplyLimit
        return try await call(request)
    }

    /// Discards a rotation (`DELETE /v1/rotations/{id}`).
    public func discardRotation(_ rotation: RotationID, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/rotations/\(rotation)", token: token.text))
    }
}

extension SalternAPI {
    /// Lists the account's sessions (`GET /v1/sessions`).
    public func listSessions(_ token: Token) async throws(APIError) -> [SessionDescription] {
        struct Reply: Decodable { let sessions: [SessionDescription] }
        let request = HTTPRequest(.get, "/v1/sessions", token: token.text, replyLimit: Self.longReplyLimit)
        return try await call(request, as: Reply.self).sessions
    }

    /// Ends all other sessions (`DELETE /v1/sessions`).
    /// - Returns: The number of ended sessions, and the new device token if the server renews it.
    public func endOtherSessions(_ token: Token) async throws(APIError) -> (ended: Int, deviceToken: Token?) {
        struct Reply: HoldsTokens {
            let ended: Int
            let deviceToken: Token?
        }
        let reply = try await call(HTTPRequest(.delete, "/v1/sessions", token: token.text), as: Reply.self)
        return (reply.ended, reply.deviceToken)
    }

    /// Ends this session (`DELETE /v1/sessions/current`).
    public func endCurrentSession(_ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/sessions/current", token: token.text))
    }

    /// Ends a session of the account (`DELETE /v1/sessions/{id}`).
    public func endSession(_ id: SessionID, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/sessions/\(id)", token: token.text))
    }
}

extension SalternAPI {
    /// Creates a share (`POST /v1/shares`).
    /// - Parameter token: Nil where the operator allows shares without an account.
    public func createShare(_ content: ShareContent, _ token: Token?) async throws(APIError) -> ShareHeader {
        try await call(Self.request(.post, "/v1/shares", token: token, content))
    }

    /// Returns a page of the account's shares (`GET /v1/shares`).
    public func listShares(page: String? = nil, limit: Int? = nil, _ token: Token) async throws(APIError) -> SharePage {
        let target = Self.target("/v1/shares", [("limit", limit.map(String.init)), ("page", page)])
        return try await call(HTTPRequest(.get, target, token: token.text))
    }

    /// Returns a share's payload and uses one view (`GET /v1/shares/{id}`).
    public func openShare(_ id: String) async throws(APIError) -> SharePayload {
        try await call(HTTPRequest(.get, "/v1/shares/\(Self.escaped(id))", replyLimit: Self.longReplyLimit))
    }

    /// Checks a share without using a view (`HEAD /v1/shares/{id}`).
    /// - Returns: The number of remaining views; nil when it is not limited.
    public func lookAtShare(_ id: String) async throws(APIError) -> Int? {
        let reply = try await send(HTTPRequest(.head, "/v1/shares/\(Self.escaped(id))"), accepting: [404, 429])
        // A reply to HEAD has no body with a problem.
        switch reply.head.status {
        case 404: throw .problem(.ofHead(404, "not_found", reply.head))
        case 429: throw .problem(.ofHead(429, "rate_limited", reply.head))
        default: return reply.head["Saltern-Views-Left"].flatMap { Int($0) }
        }
    }

    /// Replaces a share (`PUT /v1/shares/{id}`).
    /// - Parameter token: The share's manage token, or a session's.
    public func replaceShare(_ id: String, _ content: ShareContent, _ token: Token) async throws(APIError)
        -> ShareHeader
    {
        try await call(Self.request(.put, "/v1/shares/\(Self.escaped(id))", token: token, content))
    }

    /// Deletes a share (`DELETE /v1/shares/{id}`).
    /// - Parameter token: The share's manage token, or a session's.
    public func deleteShare(_ id: String, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/shares/\(Self.escaped(id))", token: token.text))
    }
}

extension Problem {
    fileprivate static func ofHead(_ status: Int, _ code: Code, _ head: HTTPReplyHead) -> Problem {
        Problem(
            status: status, code: code, title: "", detail: nil, requestId: head["X-Request-Id"], field: nil,
            canonical: nil, allowed: nil, used: nil, conflicts: nil, current: nil, retryAfter: head.retryAfter)
    }
}
