/// What a response carries after its fields.
public enum ResponseBody: Sendable, Equatable {
    case none
    case bytes([UInt8])

    /// The length in bytes.
    public var count: Int {
        switch self {
        case .none: 0
        case .bytes(let bytes): bytes.count
        }
    }
}

/// A reply. Its connection adds `Content-Length`, `Connection` and `Date`.
public struct Response: Sendable, Equatable {
    public var status: HTTPStatus
    public var fields: HTTPFields
    public var body: ResponseBody

    public init(status: HTTPStatus, fields: HTTPFields = HTTPFields(), body: ResponseBody = .none) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// A reply with a JSON body that `build` writes: exactly one JSON value.
    public static func json<Failure: Error>(
        _ status: HTTPStatus = .ok, fields: HTTPFields = HTTPFields(), capacity: Int = 256,
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) -> Response {
        var writer = JSONWriter(capacity: capacity)
        try build(&writer)
        var response = Response(status: status, fields: fields, body: .bytes(writer.finish()))
        response.fields.set("Content-Type", "application/json")
        return response
    }

    /// A 204 without a body.
    public static let noContent = Response(status: .noContent)
}
