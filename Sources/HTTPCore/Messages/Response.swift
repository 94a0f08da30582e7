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

/// A response's body that is produced during sending.
///
/// The connection calls the producer after the head is sent, and never for a reply without a body (HEAD, 204, 304). The
/// producer's closure is released at the end of the stream in all cases, also if it was never called. An object in it
/// can release the stream's resources in `deinit`.
public final class ResponseStream: Sendable {
    /// Writes the body, piece by piece, and returns at its end.
    ///
    /// The task is cancelled when the client has closed or the server stops. ``ResponseBodyWriter/write(_:)`` throws
    /// from then on. If the producer throws another error, the connection closes without the body's proper end, so that
    /// the client detects the missing part.
    public typealias Producer = @Sendable (any ResponseBodyWriter) async throws -> Void

    /// True for a stream without an end of its own. It may be silent for any time, takes no place among the active
    /// requests, and ends at once when a server stops. Otherwise, the route's deadline applies from each write to the
    /// next.
    public let isOpenEnded: Bool
    /// The number of bytes that the producer writes, if known. The reply then announces it, and is not chunked.
    public let length: Int?
    /// Produces the body.
    public let produce: Producer

    public init(isOpenEnded: Bool, length: Int? = nil, _ produce: @escaping Producer) {
        self.isOpenEnded = isOpenEnded
        self.length = length
        self.produce = produce
    }

    /// Returns the same stream with `report` called for an error of the producer. An end from outside is no error.
    public func reportingErrors(to report: @escaping @Sendable (any Error) -> Void) -> ResponseStream {
        ResponseStream(isOpenEnded: isOpenEnded, length: length) { [produce] writer in
            do {
                try await produce(writer)
            } catch {
                if !(error is ResponseStreamEnded || error is CancellationError) { report(error) }
                throw error
            }
        }
    }
}

extension ResponseStream: Equatable {
    /// Returns whether both are the same object.
    public static func == (first: ResponseStream, second: ResponseStream) -> Bool { first === second }
}

/// The target of a ``ResponseStream``. Only the producer's task uses it.
public protocol ResponseBodyWriter: Sendable {
    /// Sends bytes, and returns when the client's socket has taken all of them. A producer is therefore at most one
    /// piece ahead of its client. An empty write has no effect.
    /// - Throws: ``ResponseStreamEnded`` when the bytes cannot be delivered.
    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded)
}

/// The stream was ended from outside: the client has closed, or the server stops.
public struct ResponseStreamEnded: Error {
    public init() {}
}
