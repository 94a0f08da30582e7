/// The body of a response.
public enum ResponseBody: Sendable, Equatable {
    case none
    case bytes(ZeroizingBuffer)
    /// A body that is produced during sending, with an unknown length.
    case stream(ResponseStream)

    /// The length in bytes, if known.
    public var count: Int? {
        switch self {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .stream(let stream): stream.length
        }
    }
}

/// A reply. Its connection adds `Content-Length` or `Transfer-Encoding`, `Connection` and `Date`.
public struct Response: Sendable, Equatable {
    public var status: HTTPStatus
    public var fields: HTTPFields
    public var body: ResponseBody

    public init(status: HTTPStatus, fields: HTTPFields = HTTPFields(), body: ResponseBody = .none) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Returns a reply with a JSON body: exactly one value, written by `build`.
    public static func json<Failure: Error>(
        _ status: HTTPStatus = .ok, fields: consuming HTTPFields = HTTPFields(), capacity: Int = 256,
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) -> Response {
        var writer = JSONWriter(capacity: capacity)
        try build(&writer)
        fields.set("Content-Type", "application/json")
        return Response(status: status, fields: fields, body: .bytes(writer.finishWiped()))
    }

    /// A 204 without a body.
    public static let noContent = Response(status: .noContent)
}
