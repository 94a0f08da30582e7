internal import Cryptography

extension SalternAPI {
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
                .get, Self.target("/v1/items", query), token: token.text, replyLimit: Self.replyLimit(isMetaOnly)))
    }

    /// Returns one item (`GET /v1/items/{id}`).
    public func getItem(_ id: ItemID, _ token: Token) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(.get, "/v1/items/\(id)", token: token.text, replyLimit: Self.longReplyLimit))
    }

    /// Creates or replaces an item (`PUT /v1/items/{id}`).
    public func putItem(
        _ id: ItemID, _ content: ItemContent, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            Self.request(
                .put, "/v1/items/\(id)", token: token, fields: [precondition.field], replyLimit: Self.longReplyLimit,
                content))
    }

    /// Returns the sealed body alone (`GET /v1/items/{id}/body`).
    public func getItemBody(_ id: ItemID, _ token: Token) async throws(APIError) -> HTTPReplyStream {
        try await stream(HTTPRequest(.get, "/v1/items/\(id)/body", token: token.text))
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
        let fields = [precondition.field, ("Content-Type", "application/octet-stream")]
        return try await call(
            HTTPRequest(
                .put, Self.target("/v1/items/\(id)/body", query), fields: fields, token: token.text,
                body: SecureBytes(copying: content.body.bytes), replyLimit: Self.longReplyLimit))
    }

    /// Deletes an item and returns its tombstone (`DELETE /v1/items/{id}`).
    public func deleteItem(
        _ id: ItemID, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .delete, "/v1/items/\(id)", fields: [precondition.field], token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Restores a deleted item (`POST /v1/items/{id}/restore`).
    public func restoreItem(
        _ id: ItemID, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .post, "/v1/items/\(id)/restore", fields: [precondition.field], token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Lists older versions, the latest first, without their sealed bytes (`GET /v1/items/{id}/versions`).
    public func listVersions(
        _ id: ItemID, limit: Int? = nil, page: String? = nil, _ token: Token
    ) async throws(APIError) -> VersionPage {
        let query = [("limit", limit.map(String.init)), ("page", page)]
        return try await call(
            HTTPRequest(.get, Self.target("/v1/items/\(id)/versions", query), token: token.text))
    }

    /// Returns an older version of an item (`GET /v1/items/{id}/versions/{revision}`).
    public func getVersion(_ id: ItemID, _ revision: Revision, _ token: Token) async throws(APIError) -> ItemState {
        try await call(
            HTTPRequest(
                .get, "/v1/items/\(id)/versions/\(revision.number)", token: token.text,
                replyLimit: Self.longReplyLimit))
    }

    /// Applies all operations or none (`POST /v1/items/batch`).
    public func writeBatch(_ operations: [BatchOperation], _ token: Token) async throws(APIError) -> BatchResult {
        struct Body: Encodable { let operations: [BatchOperation] }
        return try await call(
            Self.request(.post, "/v1/items/batch", token: token, Body(operations: operations)))
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
        let target = Self.target("/v1/changes", query)
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
