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

/// The holders and queues of all failure counters, as a value without locks or tasks.
///
/// Waiters are limited for each counter and in total. One address may use only a part of either limit, so it cannot
/// exhaust the queues for others.
struct CounterQueueState {
    /// Maximum numbers of waiters.
    struct Limits: Sendable {
        /// For one counter.
        var counter = 256
        /// For one counter and one address.
        var addressAtCounter = 64
        /// In total.
        var total = 2_048
        /// In total for one address.
        var address = 256
    }

    /// The result of joining a queue.
    enum Answer { case granted, waits, refused }

    private struct Waiter {
        let number: Int
        let network: UInt64
    }

    private let limits: Limits
    /// The waiters of each counter that has a running attempt.
    private var queues: [AttemptCounter: [Waiter]] = [:]
    /// The number of waiters of each address.
    private var networks: [UInt64: Int] = [:]
    private(set) var waiterCount = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// The number of counters with a running attempt.
    var counterCount: Int { queues.count }

    /// Returns the number of waiters of a counter.
    func waiterCount(_ counter: AttemptCounter) -> Int { queues[counter]?.count ?? 0 }

    /// Takes the permit of a counter, or joins its queue.
    mutating func join(_ counter: AttemptCounter, _ number: Int, from network: UInt64) -> Answer {
        guard let queue = queues[counter] else {
            queues[counter] = []
            return .granted
        }
        guard queue.count < limits.counter, waiterCount < limits.total,
            networks[network, default: 0] < limits.address,
            queue.count(where: { $0.network == network }) < limits.addressAtCounter
        else { return .refused }
        queues[counter]?.append(Waiter(number: number, network: network))
        networks[network, default: 0] += 1
        waiterCount += 1
        return .waits
    }

    /// Leaves the queue.
    ///
    /// - Returns: True if it was still waiting. False if it already holds the permit or never joined.
    mutating func leave(_ counter: AttemptCounter, _ number: Int) -> Bool {
        guard let index = queues[counter]?.firstIndex(where: { $0.number == number }),
            let waiter = queues[counter]?.remove(at: index)
        else { return false }
        forget(waiter)
        return true
    }

    /// Releases the permit of a counter.
    ///
    /// - Returns: The number of the next holder. Nil if no waiter is left.
    mutating func pass(_ counter: AttemptCounter) -> Int? {
        guard let queue = queues[counter], !queue.isEmpty, let next = queues[counter]?.removeFirst() else {
            queues[counter] = nil
            return nil
        }
        forget(next)
        return next.number
    }

    private mutating func forget(_ waiter: Waiter) {
        waiterCount -= 1
        let left = networks[waiter.network, default: 1] - 1
        networks[waiter.network] = left > 0 ? left : nil
    }
}
