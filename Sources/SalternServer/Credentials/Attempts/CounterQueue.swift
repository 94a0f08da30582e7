internal import Synchronization

/// Lets one attempt after the other through for each counter of a node, so that whoever sends a thousand guesses at once
/// has no more of them looked at than whoever sends them one by one.
public final class CounterQueue: Sendable {
    private typealias Continuation = CheckedContinuation<Turn, Never>

    /// What became of an attempt that had to wait.
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

    /// Counters that are being attempted now.
    var counterCount: Int { state.withLock { $0.table.counterCount } }

    /// How many wait for a counter now.
    func waiterCount(_ counter: AttemptCounter) -> Int { state.withLock { $0.table.waiterCount(counter) } }

    /// Runs `body` when no other attempt at the counter is under way on this node.
    /// - Parameter network: Whose attempt it is: `IPAddress.network`.
    /// - Throws: ``TooManyAttempts`` when too many wait already, `CancellationError`, or what `body` throws.
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
                    // Whoever is cancelled from here on waits for this lock, and then finds the waiter.
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

    /// A waiter that was cancelled goes; one that has its turn by now keeps it, and ends by itself.
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
