internal import Synchronization

/// The memory limit of all bodies of a process, with a quota for each sender.
///
/// A body counts with its peak: its text, the parsed and decoded values, and the copies of the database's driver while
/// it is sent (``MemoryFactor``). A sender is an account, or an address while the account is unknown.
///
/// - Each sender has a quota, an eighth of the total.
/// - A sender without other bodies may have one body beyond its quota, because the largest items need it. The memory of
///   such bodies comes from a separate reserve. When the reserve is used up, bodies can wait for it, and borrowers
///   return it in time (``MemoryCharge/borrow(_:from:wake:)``).
/// - Memory of incomplete bodies can be held until others need it (``MemoryCharge/hold(_:at:wake:)``).
public final class MemoryBudget: Sendable {
    /// The sender that is charged.
    public enum Owner: Hashable, Sendable {
        /// The network of an address, as in the limits of connections.
        case address(UInt64)
        case account(UInt64, UInt64)
    }

    private struct State {
        /// The bytes within quotas.
        var used = 0
        /// The reserve of bodies beyond their sender's quota.
        var reserve: LargeBodyMemory
        var recallable: RecallableMemory
        var owners: [Owner: Int] = [:]
    }

    /// The total of bytes that is divided into quotas.
    public let total: Int
    /// The quota of one sender in bytes, for several bodies.
    public let quota: Int
    /// The size of the reserve in bytes: the largest charge that can ever be granted.
    public let reserve: Int
    private let state: Mutex<State>

    /// - Parameter moment: The time during which held memory (``MemoryCharge/hold(_:at:wake:)``) cannot be recalled.
    public init(total: Int, reserve: Int, moment: Duration = .seconds(1)) {
        self.total = total
        self.reserve = reserve
        quota = total / 8
        state = Mutex(
            State(reserve: LargeBodyMemory(total: reserve), recallable: RecallableMemory(total: total, moment: moment)))
    }

    /// The charged bytes.
    public var used: Int { state.withLock { $0.used + $0.reserve.used } }

    /// True when a body waits for which borrowers return memory.
    public var isReserveWanted: Bool { state.withLock { $0.reserve.isWanted } }

    /// Returns the bytes charged to a sender.
    public func used(by owner: Owner) -> Int { state.withLock { $0.owners[owner] ?? 0 } }

    /// Returns an empty charge, to be enlarged.
    public func open(for owner: Owner) -> MemoryCharge { MemoryCharge(self, owner) }

    /// Changes a charge from `old` to `new` bytes. Less is always granted.
    /// - Parameters:
    ///   - requester: The borrower that waits when the reserve is used up. Nil for a request that does not wait.
    ///   - holder: The time and the callback of a recall. Nil for memory that cannot be recalled.
    fileprivate func change(
        _ id: ObjectIdentifier, of owner: Owner, from old: Int, to new: Int, requester: LargeBodyMemory.Requester?,
        holder: (now: ContinuousClock.Instant, wake: @Sendable () -> Void)?
    ) -> MemoryGrant {
        var wakes: [LargeBodyMemory.Requester] = []
        var recalls: [@Sendable () -> Void] = []
        let answer = state.withLock { state -> MemoryGrant in
            let rest = (state.owners[owner] ?? 0) - old
            let (oldReserve, newReserve) = (old > quota ? old : 0, new > quota ? new : 0)
            let used = state.used + (new - newReserve) - (old - oldReserve)
            let fits = newReserve > 0 ? rest == 0 : rest + new <= quota && used <= total
            guard new <= old || fits else {
                if let holder, rest + new <= quota { recalls = state.recallable.recall(used: used, at: holder.now) }
                return .refused
            }
            if newReserve > oldReserve {
                let answer: MemoryGrant
                (answer, wakes) = state.reserve.lend(newReserve - oldReserve, to: requester)
                guard answer == .granted else { return answer }
            } else if newReserve < oldReserve {
                wakes = state.reserve.giveBack(oldReserve - newReserve, by: id)
            }
            // Senders without bodies take no memory.
            state.owners[owner] = rest + new > 0 ? rest + new : nil
            state.used = used
            if let holder {
                state.recallable.hold(new, by: id, at: holder.now, wake: holder.wake)
                recalls = state.recallable.recall(used: used, at: holder.now)
            } else {
                state.recallable.resize(to: new, by: id)
            }
            return .granted
        }
        for requester in wakes { requester.wake() }
        for recall in recalls { recall() }
        return answer
    }

    /// Removes a borrower from the queue, and wakes the next.
    fileprivate func stopWaiting(_ id: ObjectIdentifier) {
        let (hasWaited, next) = state.withLock { ($0.reserve.remove(id), $0.reserve.next) }
        if hasWaited != nil { next?.wake() }
    }

    fileprivate func keep(_ id: ObjectIdentifier) { state.withLock { $0.recallable.keep(id) } }

    fileprivate func isRecalled(_ id: ObjectIdentifier) -> Bool { state.withLock { $0.recallable.isRecalled(id) } }

    fileprivate func isSlow(_ network: UInt64) -> Bool { state.withLock { $0.reserve.isSlow(network) } }

    fileprivate func noteArrival(from network: UInt64) { state.withLock { $0.reserve.hasArrived(from: network) } }

    fileprivate func noteRecall(from network: UInt64) { state.withLock { $0.reserve.wasSlow(network) } }
}

/// The charge of one body in a ``MemoryBudget``. It ends with its last reference.
public final class MemoryCharge: Sendable {
    private struct State {
        var count = 0
        /// The network that waits for the reserve or has borrowed from it.
        var network: UInt64?
    }

    private let budget: MemoryBudget
    private let owner: MemoryBudget.Owner
    private let state = Mutex(State())

    fileprivate init(_ budget: MemoryBudget, _ owner: MemoryBudget.Owner) {
        self.budget = budget
        self.owner = owner
    }

    deinit {
        if state.withLock({ $0.network != nil }) { budget.stopWaiting(ObjectIdentifier(self)) }
        resize(to: 0)
    }

    /// The charged bytes.
    public var count: Int { state.withLock { $0.count } }

    /// True when the charge exceeds the quota of a sender.
    public var exceedsQuota: Bool { count > budget.quota }

    /// Changes the charge to `count` bytes. Less is always granted.
    /// - Returns: True if there is room. Otherwise nothing has changed.
    @discardableResult public func resize(to count: Int) -> Bool { change(to: count) == .granted }

    /// Changes the charge to `count` bytes within its sender's quota. It is recalled when others need the memory.
    /// - Parameters:
    ///   - now: The present time.
    ///   - wake: Called from any thread at a recall. The charge must then become 0.
    /// - Returns: True if there is room. Otherwise nothing has changed.
    public func hold(_ count: Int, at now: ContinuousClock.Instant, wake: @escaping @Sendable () -> Void) -> Bool {
        change(to: count, holder: (now, wake)) == .granted
    }

    /// True when the held memory is recalled.
    public var isRecalled: Bool { budget.isRecalled(ObjectIdentifier(self)) }

    /// Changes the charge to `count` bytes, above its sender's quota, or waits in a queue until the charge ends.
    /// - Parameters:
    ///   - network: The network of the body's sender.
    ///   - wake: Called from any thread when a new request may succeed, and when others wait for this charge's memory.
    public func borrow(_ count: Int, from network: UInt64, wake: @escaping @Sendable () -> Void) -> MemoryGrant {
        let requester = LargeBodyMemory.Requester(id: ObjectIdentifier(self), network: network, wake: wake)
        return change(to: count, requester: requester)
    }

    private func change(
        to count: Int, requester: LargeBodyMemory.Requester? = nil,
        holder: (now: ContinuousClock.Instant, wake: @Sendable () -> Void)? = nil
    ) -> MemoryGrant {
        state.withLock { state in
            if let requester { state.network = requester.network }
            let answer = budget.change(
                ObjectIdentifier(self), of: owner, from: state.count, to: count, requester: requester, holder: holder)
            if answer == .granted { state.count = count }
            return answer
        }
    }

    /// True when others wait for this charge's part of the reserve.
    public var isWanted: Bool { exceedsQuota && budget.isReserveWanted }

    /// True when others precede it, because a body from the same network had to return memory.
    public var isSlow: Bool { state.withLock { $0.network }.map(budget.isSlow) ?? false }

    /// Notes that an incomplete body returned borrowed memory. Others precede its network from now on.
    public func noteRecall() {
        if let network = state.withLock({ $0.network }) { budget.noteRecall(from: network) }
    }

    /// Notes that the body is complete. It keeps its memory.
    public func noteArrival() {
        budget.keep(ObjectIdentifier(self))
        if let network = state.withLock({ $0.network }) { budget.noteArrival(from: network) }
    }
}

/// Selects the incomplete bodies that lose their memory in a shortage. Pure.
///
/// When more than three quarters are taken, the oldest body loses its memory, so that new ones have room. A new body is
/// protected for a moment, so a body that is sent at once arrives. To block others, an attacker has to send whole
/// bodies again in each such moment.
struct RecallableMemory: Sendable {
    private struct Holder: Sendable {
        let since: ContinuousClock.Instant
        var count: Int
        var isRecalled = false
        let wake: @Sendable () -> Void
    }

    private let mark: Int
    /// The time during which a body loses no memory.
    private let moment: Duration
    private var holders: [ObjectIdentifier: Holder] = [:]

    init(total: Int, moment: Duration) {
        mark = total / 4 * 3
        self.moment = moment
    }

    /// Records the memory of a body that can lose it.
    mutating func hold(
        _ count: Int, by id: ObjectIdentifier, at now: ContinuousClock.Instant, wake: @escaping @Sendable () -> Void
    ) {
        guard holders[id] == nil else { return resize(to: count, by: id) }
        if count > 0 { holders[id] = Holder(since: now, count: count, wake: wake) }
    }

    /// Updates the memory of a body, if it can lose it.
    mutating func resize(to count: Int, by id: ObjectIdentifier) {
        if count == 0 { keep(id) } else { holders[id]?.count = count }
    }

    /// Protects the memory of a body permanently.
    mutating func keep(_ id: ObjectIdentifier) { if !holders.isEmpty { holders[id] = nil } }

    func isRecalled(_ id: ObjectIdentifier) -> Bool { holders[id]?.isRecalled ?? false }

    /// Recalls memory from the oldest bodies until at most the mark is taken.
    /// - Parameter used: The bytes that are taken, or would be.
    /// - Returns: The callbacks of the bodies that have to return memory.
    mutating func recall(used: Int, at now: ContinuousClock.Instant) -> [@Sendable () -> Void] {
        guard used > mark else { return [] }
        var excess = used - mark - holders.values.reduce(0) { $1.isRecalled ? $0 + $1.count : $0 }
        guard excess > 0 else { return [] }
        let eldest = holders.filter { !$0.value.isRecalled && $0.value.since + moment <= now }
            .sorted { $0.value.since < $1.value.since }
        var wakes: [@Sendable () -> Void] = []
        for (id, holder) in eldest where excess > 0 {
            holders[id]?.isRecalled = true
            excess -= holder.count
            wakes.append(holder.wake)
        }
        return wakes
    }
}

/// The peak memory of a body, in quarters of its length.
public struct MemoryFactor: Sendable, Hashable {
    private let quarters: Int

    /// First the text with the bytes decoded from base64 (three quarters). Later, without the text, three copies of
    /// these bytes: the value's, the parameter's and the driver's.
    public static let json = MemoryFactor(quarters: 9)
    /// The bytes, the parameter's copy and the driver's copy.
    public static let bytes = MemoryFactor(quarters: 12)
    /// Bytes without further copies.
    public static let none = MemoryFactor(quarters: 4)

    private init(quarters: Int) { self.quarters = quarters }

    /// Returns the peak of a body of `count` bytes.
    public func peak(of count: Int) -> Int { count / 4 * quarters + count % 4 * quarters / 4 }
}

/// The memory of a process for bodies and for unread output, independent of the number of its loops.
///
/// The number of large bodies in memory at once is the reserve of their budget, divided by the peak of each
/// (``MemoryFactor/peak(of:)``).
public struct ServerBudgets: Sendable {
    /// Bodies of identified senders, by account.
    public let bodies: MemoryBudget
    /// Bodies of unidentified senders, by address.
    public let unidentifiedBodies: MemoryBudget
    /// Replies that wait for their clients, by address.
    public let output: MemoryBudget

    /// Creates budgets. The defaults limit a process to 200 MiB, so that it stays below 256 MB in total.
    public init(
        bodies: MemoryBudget = MemoryBudget(total: 48 * mebibyte, reserve: 56 * mebibyte),
        unidentifiedBodies: MemoryBudget = MemoryBudget(total: 8 * mebibyte, reserve: 0),
        output: MemoryBudget = MemoryBudget(total: 64 * mebibyte, reserve: 24 * mebibyte)
    ) {
        self.bodies = bodies
        self.unidentifiedBodies = unidentifiedBodies
        self.output = output
    }

    public static let mebibyte = 1_048_576
}
