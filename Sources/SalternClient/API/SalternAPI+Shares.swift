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
