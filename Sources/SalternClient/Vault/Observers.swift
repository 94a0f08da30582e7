internal import Foundation

/// Who wants to hear of something.
final class Observers<Value: Sendable>: Sendable {
    /// Nil when no value follows.
    private let streams = Locked<[UUID: AsyncStream<Value>.Continuation]?>([:])

    /// Begins at once, so that nothing that happens after it is missed.
    /// - Parameters:
    ///   - count: How much waits for who reads slowly: the newest.
    ///   - first: What there is already.
    func add(keeping count: Int = 256, beginningWith first: Value? = nil) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(count))
        if let first { continuation.yield(first) }
        let id = UUID()
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        let hasEnded = streams.withLock { streams in
            streams?[id] = continuation
            return streams == nil
        }
        if hasEnded { continuation.finish() }
        return stream
    }

    private func remove(_ id: UUID) { _ = streams.withLock { $0?.removeValue(forKey: id) } }

    func tell(_ value: Value) {
        // A stream that has just ended calls back: not under the lock.
        for stream in streams.withLock({ Array(($0 ?? [:]).values) }) { stream.yield(value) }
    }

    /// Ends all streams, and those that begin later.
    func end() {
        let streams = streams.withLock { $0.take() } ?? [:]
        for stream in streams.values { stream.finish() }
    }
}
