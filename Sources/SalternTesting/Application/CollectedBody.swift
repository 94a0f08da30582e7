internal import HTTPCore
internal import Synchronization

/// Takes whatever a stream writes: the whole of it, or piece by piece while it is written.
final class CollectedBody: ResponseBodyWriter {
    private let collected = Mutex<[UInt8]>([])
    private let pieces: AsyncStream<[UInt8]>.Continuation?

    /// - Parameter pieces: Where each piece goes too.
    init(pieces: AsyncStream<[UInt8]>.Continuation? = nil) {
        self.pieces = pieces
    }

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        if Task.isCancelled { throw ResponseStreamEnded() }
        collected.withLock { $0 += bytes }
        pieces?.yield(bytes)
    }

    /// The bytes so far.
    var bytes: [UInt8] { collected.withLock { $0 } }
}

/// A reply whose body is being produced, as a test reads it.
public final class TestStream: Sendable {
    /// Status and fields; no body.
    public let response: TestResponse
    private let pieces: AsyncStream<[UInt8]>
    private let task: Task<Void, Never>?

    init(response: TestResponse, pieces: AsyncStream<[UInt8]>, task: Task<Void, Never>?) {
        self.response = response
        self.pieces = pieces
        self.task = task
    }

    /// The next piece as text, or nil when the stream has ended. Asked by one task at a time.
    public func next() async -> String? {
        var iterator = pieces.makeAsyncIterator()
        return await iterator.next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// Goes away as a client that closes its connection does, and waits until the producer has noticed.
    public func close() async {
        task?.cancel()
        await task?.value
    }
}
