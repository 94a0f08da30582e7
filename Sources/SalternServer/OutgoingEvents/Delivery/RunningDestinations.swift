internal import Synchronization

/// The destinations that have a runner.
final class RunningDestinations: Sendable {
    private let ids = Mutex<Set<DestinationID>>([])

    /// Returns whether the destination had none, and has one now.
    func begin(_ id: DestinationID) -> Bool { ids.withLock { $0.insert(id).inserted } }

    func end(_ id: DestinationID) { _ = ids.withLock { $0.remove(id) } }
}
