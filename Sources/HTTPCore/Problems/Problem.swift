/// An error in the form for clients (RFC 9457, problem details).
///
/// `code` is the stable, machine-readable name. `detail` is for people, and never has a secret, a stored value or the
/// text of another error.
public struct Problem: Error, Sendable {
    public var status: HTTPStatus
    /// Stable name in lower_snake_case.
    public var code: String
    /// The kind of problem in a few words. By default the reason phrase of the status.
    public var title: String
    /// The fault of this request, and its remedy.
    public var detail: String?
    /// The affected member or parameter, for example `kdf.iterations`.
    public var field: String?
    /// The exceeded limit.
    public var limit: Int?
    /// Further members, written after the others.
    public var members: [(name: String, value: JSONValue)]
    /// Writes further members that are too large for values.
    public var writeMembers: (@Sendable (inout JSONWriter) -> Void)?
    /// Writes the last members during sending, after the given start of the document. For members that are too long for
    /// memory.
    public var streamMembers: (@Sendable (JSONWriter, any ResponseBodyWriter) async throws -> Void)?
    /// The maximum number of bytes that ``writeMembers`` writes, for the first allocation.
    public var capacity = 0
    /// Fields of the response, such as `Retry-After`, `Allow` or `WWW-Authenticate`.
    public var responseFields: HTTPFields

    public init(
        _ status: HTTPStatus, _ code: String, title: String? = nil, detail: String? = nil, field: String? = nil,
        limit: Int? = nil, members: [(name: String, value: JSONValue)] = [], responseFields: HTTPFields = HTTPFields()
    ) {
        self.status = status
        self.code = code
        self.title = title ?? status.reason
        self.detail = detail
        self.field = field
        self.limit = limit
        self.members = members
        self.responseFields = responseFields
    }

    /// The URI that names the kind of problem.
    public var type: String { "urn:saltern:problem:\(code)" }

    /// Returns the problem as a response with an `application/problem+json` body.
    ///
    /// - Parameter requestID: The identifier for the body. Nil when the request never got one.
    /// - Returns: A response with the problem's status and ``responseFields``.
    public func response(requestID: RequestID? = nil) -> Response {
        var writer = JSONWriter(capacity: 320 + capacity)
        writer.beginObject()
        writer.member("type", type)
        writer.member("title", title)
        writer.member("status", Int(status.code))
        writer.member("code", code)
        if let detail { writer.member("detail", detail) }
        if let field { writer.member("field", field) }
        if let limit { writer.member("limit", limit) }
        if let requestID { writer.member("requestId", requestID.description) }
        for (name, value) in members {
            writer.name(name)
            writer.value(value)
        }
        writeMembers?(&writer)
        let body: ResponseBody
        if let streamMembers {
            body = .stream(ResponseStream(isOpenEnded: false) { [writer] in try await streamMembers(writer, $0) })
        } else {
            writer.endObject()
            body = .bytes(writer.finishWiped())
        }
        var response = Response(status: status, fields: responseFields, body: body)
        response.fields.set("Content-Type", "application/problem+json")
        return response
    }
}

extension Problem: ProblemConvertible {
    public var problem: Problem { self }
}

/// An error with a form for clients.
public protocol ProblemConvertible: Error {
    var problem: Problem { get }
}

extension Problem {
    /// 404 `not_found`: the same for an unknown path and for a missing object.
    public static var notFound: Problem {
        Problem(.notFound, "not_found", detail: "The resource does not exist.")
    }

    /// 405 `method_not_allowed` with the `Allow` field.
    public static func methodNotAllowed(allowed: [HTTPMethod]) -> Problem {
        Problem(
            .methodNotAllowed, "method_not_allowed", detail: "The resource does not support this method: see Allow.",
            responseFields: ["Allow": allowed.map(\.name).joined(separator: ", ")])
    }

    /// 500 `internal_error`, without the cause.
    public static var internalError: Problem {
        Problem(.internalServerError, "internal_error", detail: "The server failed. Try the request again.")
    }
}
