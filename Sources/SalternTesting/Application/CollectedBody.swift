internal import HTTPCore
internal import Synchronization

/// Collects the output of a stream, as a whole or piece by piece.
final class CollectedBody: ResponseBodyWriter {
    private let collected = Mutex<[UInt8]>([])
    private let pieces: AsyncStream<[UInt8]>.Continuation?

    /// - Parameter pieces: Also receives each piece.
    init(pieces: AsyncStream<[UInt8]>.Continuation? = nil) {
        self.pieces = pieces
    }

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        if Task.isCancelled { throw ResponseStreamEnded() }
        collected.withLock { $0 += bytes }
        pieces?.yield(bytes)
    }

    /// The bytes written so far.
    var bytes: [UInt8] { collected.withLock { $0 } }
}

/// A reply with a body in production, for tests.
public final class TestStream: Sendable {
    /// Status and fields, without a body.
    public let response: TestResponse
    private let pieces: AsyncStream<[UInt8]>
    private let task: Task<Void, Never>?

    init(response: TestResponse, pieces: AsyncStream<[UInt8]>, task: Task<Void, Never>?) {
        self.response = response
        self.pieces = pieces
        self.task = task
    }

    /// Returns the next piece as text, or nil at the end of the stream. Only one task at a time may call it.
    public func next() async -> String? {
        var iterator = pieces.makeAsyncIterator()
        return await iterator.next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// Cancels the stream as a closed connection does, and waits for the end of the producer.
    public func close() async {
        task?.cancel()
        await task?.value
    }
}
