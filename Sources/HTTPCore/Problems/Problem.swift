/// An error as clients see it (RFC 9457, problem details).
///
/// `code` is the stable, machine-readable name; `detail` is for people and never holds a secret, a stored value or the
/// text of another error.
public struct Problem: Error, Sendable {
    public var status: HTTPStatus
    /// Stable name in lower_snake_case.
    public var code: String
    /// The kind of problem in a few words; by default the reason phrase of the status.
    public var title: String
    /// What happened this time and what to do about it.
    public var detail: String?
    /// Which member or parameter is meant, for example `kdf.iterations`.
    public var field: String?
    /// The number that was exceeded.
    public var limit: Int?
    /// Further members, written after the others.
    public var members: [(name: String, value: JSONValue)]
    /// Writes further members that are too large to be made a value first.
    public var writeMembers: (@Sendable (inout JSONWriter) -> Void)?
    /// Writes the last members while the reply is sent, given the document so far; for what is too long to be made whole.
    public var streamMembers: (@Sendable (JSONWriter, any ResponseBodyWriter) async throws -> Void)?
    /// Bytes that ``writeMembers`` writes at most, for the first allocation.
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

    /// The problem as a response with an `application/problem+json` body.
    ///
    /// - Parameter requestID: The identifier to name in the body; nil when the request never got one.
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

/// An error that says itself how clients shall see it.
public protocol ProblemConvertible: Error {
    var problem: Problem { get }
}

extension Problem {
    /// 404 `not_found`: the same for a path that leads nowhere and for a thing that is not there.
    public static var notFound: Problem {
        Problem(.notFound, "not_found", detail: "The resource does not exist.")
    }

    /// 405 `method_not_allowed` with the `Allow` field.
    public static func methodNotAllowed(allowed: [HTTPMethod]) -> Problem {
        Problem(
            .methodNotAllowed, "method_not_allowed", detail: "The resource does not support this method: see Allow.",
            responseFields: ["Allow": allowed.map(\.name).joined(separator: ", ")])
    }

    /// 500 `internal_error`, which says nothing about the cause.
    public static var internalError: Problem {
        Problem(.internalServerError, "internal_error", detail: "The server failed. Try the request again.")
    }
}
