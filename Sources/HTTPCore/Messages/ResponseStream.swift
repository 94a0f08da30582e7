/// A response's body that is made while it is sent.
///
/// The connection calls the producer once the head is on its way, and never for a reply that has no body (HEAD, 204,
/// 304). What the producer's closure holds is let go when the stream ends, in whatever way, also when it was never
/// called: an object in it can give back in `deinit` what the stream holds.
public final class ResponseStream: Sendable {
    /// Writes the body, piece by piece, and returns at its end.
    ///
    /// The task is cancelled as soon as the client has gone or the server stops; ``ResponseBodyWriter/write(_:)``
    /// throws from then on. When it throws anything by itself, the connection is closed without the body's proper
    /// end, so that the client knows that something is missing.
    public typealias Producer = @Sendable (any ResponseBodyWriter) async throws -> Void

    /// Whether the stream goes on until somebody ends it. Then it may be silent for as long as it likes, it takes no
    /// place among the requests that are being answered, and a server that stops ends it at once. Otherwise the
    /// producer has the route's deadline from each write to the next.
    public let isOpenEnded: Bool
    /// How many bytes the producer writes, when that is known: then the reply says so, and is not chunked.
    public let length: Int?
    /// Makes the body.
    public let produce: Producer

    public init(isOpenEnded: Bool, length: Int? = nil, _ produce: @escaping Producer) {
        self.isOpenEnded = isOpenEnded
        self.length = length
        self.produce = produce
    }

    /// The same stream; `report` hears of an error of the producer. An end that came from outside is none.
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
    /// A stream is equal to itself only.
    public static func == (first: ResponseStream, second: ResponseStream) -> Bool { first === second }
}

/// Where a ``ResponseStream`` writes its body. Used from the task that it was lent to.
public protocol ResponseBodyWriter: Sendable {
    /// Sends bytes, and returns when the client's socket has taken them all: a producer can never be more than one
    /// piece ahead of its client. Writing nothing does nothing.
    /// - Throws: ``ResponseStreamEnded`` when nobody takes any more.
    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded)
}

/// The stream has ended from outside: the client has gone, or the server stops.
public struct ResponseStreamEnded: Error {
    public init() {}
}
