internal import Synchronization

/// The destinations that have a runner.
final class RunningDestinations: Sendable {
    private let ids = Mutex<Set<DestinationID>>([])

    /// Adds a destination. Returns false if it already has a runner.
    func begin(_ id: DestinationID) -> Bool { ids.withLock { $0.insert(id).inserted } }

    func end(_ id: DestinationID) { _ = ids.withLock { $0.remove(id) } }
}
