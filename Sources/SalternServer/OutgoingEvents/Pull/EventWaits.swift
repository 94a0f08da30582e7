internal import Synchronization

/// Limits the requests of a node that wait for events, because each reads the database once a second. Ends them when
/// the node stops.
final class EventWaits: Sendable {
    /// The most waits of one destination on one node.
    static let limit = 8
    /// A wait notices the end of all waits within this time.
    private static let step = Duration.milliseconds(100)

    private struct State {
        var counts: [DestinationID: Int] = [:]
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// A wait that ends with its last reference.
    final class Wait: Sendable {
        private let waits: EventWaits
        private let id: DestinationID

        fileprivate init(_ waits: EventWaits, _ id: DestinationID) {
            self.waits = waits
            self.id = id
        }

        deinit { waits.end(id) }

        /// Pauses. Returns false at once when the node ends all waits.
        /// - Throws: A `CancellationError` if the task is cancelled.
        func pause(_ duration: Duration) async throws -> Bool {
            let end = ContinuousClock.now + duration
            while !waits.hasEnded, case let left = end - .now, left > .zero {
                try await Task.sleep(for: min(left, EventWaits.step))
            }
            return !waits.hasEnded
        }
    }

    private var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Begins a wait. Returns nil if the destination has ``limit`` waits.
    func begin(_ id: DestinationID) -> Wait? {
        let isAllowed = state.withLock { state in
            guard state.counts[id, default: 0] < Self.limit else { return false }
            state.counts[id, default: 0] += 1
            return true
        }
        return isAllowed ? Wait(self, id) : nil
    }

    /// Ends all waits, and those that begin later.
    func endAll() { state.withLock { $0.hasEnded = true } }

    private func end(_ id: DestinationID) {
        state.withLock { state in
            state.counts[id, default: 1] -= 1
            if state.counts[id] == 0 { state.counts[id] = nil }
        }
    }
}
