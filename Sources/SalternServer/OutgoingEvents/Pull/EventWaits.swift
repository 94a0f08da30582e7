internal import Synchronization

/// Limits the requests of a node that wait for events, because each reads the database once a second.
final class EventWaits: Sendable {
    /// The most waits of one destination on one node.
    static let limit = 8

    private let counts = Mutex<[DestinationID: Int]>([:])

    /// A wait that ends with its last reference.
    final class Wait: Sendable {
        private let waits: EventWaits
        private let id: DestinationID

        fileprivate init(_ waits: EventWaits, _ id: DestinationID) {
            self.waits = waits
            self.id = id
        }

        deinit { waits.end(id) }
    }

    /// Begins a wait. Returns nil if the destination has ``limit`` waits.
    func begin(_ id: DestinationID) -> Wait? {
        let isAllowed = counts.withLock { counts in
            guard counts[id, default: 0] < Self.limit else { return false }
            counts[id, default: 0] += 1
            return true
        }
        return isAllowed ? Wait(self, id) : nil
    }

    private func end(_ id: DestinationID) {
        counts.withLock { counts in
            counts[id, default: 1] -= 1
            if counts[id] == 0 { counts[id] = nil }
        }
    }
}
