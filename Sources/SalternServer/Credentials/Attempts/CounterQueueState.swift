/// Who has the turn at each counter and who waits for it, in order: a value without locks or tasks.
///
/// What waits is bounded for each counter and in all, and of both bounds one address has a part only: nobody fills by
/// himself what others need.
struct CounterQueueState {
    /// How many may wait.
    struct Limits: Sendable {
        /// For one counter.
        var counter = 256
        /// For one counter, of one address.
        var addressAtCounter = 64
        /// In all.
        var total = 2_048
        /// In all, of one address.
        var address = 256
    }

    /// What became of somebody who asked for a turn.
    enum Answer { case granted, waits, refused }

    private struct Waiter {
        let number: Int
        let network: UInt64
    }

    private let limits: Limits
    /// Counters at which somebody has the turn.
    private var queues: [AttemptCounter: [Waiter]] = [:]
    /// How many of each address wait.
    private var networks: [UInt64: Int] = [:]
    private(set) var waiterCount = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Counters that are being attempted.
    var counterCount: Int { queues.count }

    /// How many wait for a counter.
    func waiterCount(_ counter: AttemptCounter) -> Int { queues[counter]?.count ?? 0 }

    /// Asks for the turn at a counter.
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
    /// - Returns: Whether it still waited; if not, it has the turn by now, or never asked.
    mutating func leave(_ counter: AttemptCounter, _ number: Int) -> Bool {
        guard let index = queues[counter]?.firstIndex(where: { $0.number == number }),
            let waiter = queues[counter]?.remove(at: index)
        else { return false }
        forget(waiter)
        return true
    }

    /// Ends a turn.
    /// - Returns: Whose turn it is now; nil when nobody waits.
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
