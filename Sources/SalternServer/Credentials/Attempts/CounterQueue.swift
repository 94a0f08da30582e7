internal import Synchronization

/// Queues attempts at each failure counter of a node, one at a time. A thousand simultaneous guesses are therefore
/// checked no faster than successive ones.
public final class CounterQueue: Sendable {
    private typealias Continuation = CheckedContinuation<Turn, Never>

    /// The result of waiting for a counter.
    private enum Turn { case granted, refused, cancelled }

    private struct State {
        var table: CounterQueueState
        var continuations: [Int: Continuation] = [:]
        var lastNumber = 0
    }

    private let state: Mutex<State>

    public convenience init() { self.init(limits: CounterQueueState.Limits()) }

    init(limits: CounterQueueState.Limits) {
        state = Mutex(State(table: CounterQueueState(limits: limits)))
    }

    /// The number of counters with a running attempt.
    var counterCount: Int { state.withLock { $0.table.counterCount } }

    /// Returns the number of waiters of a counter.
    func waiterCount(_ counter: AttemptCounter) -> Int { state.withLock { $0.table.waiterCount(counter) } }

    /// Runs `body` while no other attempt at the counter runs on this node.
    ///
    /// - Parameter network: The client's `IPAddress.network`.
    /// - Throws: ``TooManyAttempts`` if too many wait already, `CancellationError`, or an error of `body`.
    func wait<Result>(
        for counter: AttemptCounter, from network: UInt64, _ body: () async throws -> Result
    ) async throws -> Result {
        try await take(counter, network)
        defer { pass(counter) }
        return try await body()
    }

    private func take(_ counter: AttemptCounter, _ network: UInt64) async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let turn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let turn: Turn? = state.withLock { state in
                    // A cancellation from here on waits for this lock, and then finds the waiter.
                    if Task.isCancelled { return .cancelled }
                    switch state.table.join(counter, number, from: network) {
                    case .granted: return .granted
                    case .refused: return .refused
                    case .waits:
                        state.continuations[number] = continuation
                        return nil
                    }
                }
                if let turn { continuation.resume(returning: turn) }
            }
        } onCancel: {
            leave(counter, number)
        }
        switch turn {
        case .granted: return
        case .refused: throw TooManyAttempts(wait: .seconds(1))
        case .cancelled: throw CancellationError()
        }
    }

    /// Removes a cancelled waiter. A waiter that already holds the permit keeps it and ends by itself.
    private func leave(_ counter: AttemptCounter, _ number: Int) {
        let continuation = state.withLock { state in
            state.table.leave(counter, number) ? state.continuations.removeValue(forKey: number) : nil
        }
        continuation?.resume(returning: .cancelled)
    }

    private func pass(_ counter: AttemptCounter) {
        let next = state.withLock { state in
            state.table.pass(counter).flatMap { state.continuations.removeValue(forKey: $0) }
        }
        next?.resume(returning: .granted)
    }
}
