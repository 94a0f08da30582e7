internal import Synchronization

/// Counts the delivery attempts of one node for metrics.
public final class DeliveryCounters: Sendable {
    /// An attempt's result, by destination.
    public struct Label: Sendable, Hashable, Comparable {
        public let destination: String
        /// `delivered`, `rejected`, `gone` or a ``WebhookFailure``.
        public let result: String

        public static func < (left: Label, right: Label) -> Bool {
            (left.destination, left.result) < (right.destination, right.result)
        }
    }

    private struct State {
        var attempts: [Label: Int] = [:]
        var open: Set<String> = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Attempts since the start.
    public var attempts: [(label: Label, count: Int)] {
        state.withLock { $0.attempts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    /// The names of destinations whose circuit breaker is open.
    public var openBreakers: Set<String> { state.withLock { $0.open } }

    func count(_ outcome: WebhookOutcome, of destination: DestinationName) {
        let result =
            switch outcome {
            case .status(200...299): "delivered"
            case .status(410): "gone"
            case .status: "rejected"
            case .failed(let failure): failure.rawValue
            }
        state.withLock {
            $0.attempts[Label(destination: destination.description, result: result), default: 0] += 1
        }
    }

    func note(_ breaker: CircuitBreaker, of destination: DestinationName) {
        state.withLock { state in
            if breaker.isOpen {
                state.open.insert(destination.description)
            } else {
                state.open.remove(destination.description)
            }
        }
    }
}
