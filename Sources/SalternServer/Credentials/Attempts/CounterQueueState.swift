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
