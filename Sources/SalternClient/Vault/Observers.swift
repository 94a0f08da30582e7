internal import Foundation
internal import Synchronization

/// Who wants to hear of changes.
final class Observers: Sendable {
    private let streams = Mutex<[UUID: AsyncStream<Set<ItemID>>.Continuation]>([:])

    /// Begins at once, so that nothing that happens after it is missed.
    func add() -> AsyncStream<Set<ItemID>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Set<ItemID>.self, bufferingPolicy: .bufferingNewest(256))
        let id = UUID()
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        streams.withLock { $0[id] = continuation }
        return stream
    }

    private func remove(_ id: UUID) { _ = streams.withLock { $0.removeValue(forKey: id) } }

    func tell(_ ids: Set<ItemID>) {
        // A stream that has just ended calls back: not under the lock.
        for stream in streams.withLock({ Array($0.values) }) { stream.yield(ids) }
    }
}
