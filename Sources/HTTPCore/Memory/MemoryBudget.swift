internal import Synchronization

/// How much memory all bodies of a process may take, and how much of it one party may have.
///
/// What is counted is a body's peak: its text, what is parsed and decoded of it, and what the database's driver holds of
/// it while it is sent (``MemoryFactor``). A party is an account, or an address as long as no account is known.
///
/// - Each party has a part, an eighth of the whole.
/// - Beyond its part it may have one body at a time that is the only one it has, for otherwise the largest items could
///   not be stored at all. Such bodies have memory of their own: it is lent to them, and what the others have is whole.
///   Who comes when it is lent out may wait for it, and whoever has it gives it back in time (``MemoryCharge/borrow``).
/// - What has not arrived can be held until others need it (``MemoryCharge/hold``).
public final class MemoryBudget: Sendable {
    /// Who is charged.
    public enum Owner: Hashable, Sendable {
        /// The network of an address, as connections are counted by.
        case address(UInt64)
        case account(UInt64, UInt64)
    }

    private struct State {
        /// Within parts.
        var used = 0
        /// By bodies beyond their party's part.
        var lent: LargeBodyMemory
        var recallable: RevocableMemory
        var owners: [Owner: Int] = [:]
    }

    /// The bytes of the whole that is divided into parts.
    public let total: Int
    /// The bytes that one party may have in several bodies.
    public let part: Int
    /// The bytes for all bodies beyond their party's part: the largest charge that can ever be granted.
    public let loan: Int
    private let state: Mutex<State>

    /// - Parameter moment: How long who holds something (``MemoryCharge/hold``) loses nothing.
    public init(total: Int, loan: Int, moment: Duration = .seconds(1)) {
        self.total = total
        self.loan = loan
        part = total / 8
        state = Mutex(
            State(lent: LargeBodyMemory(total: loan), recallable: RevocableMemory(total: total, moment: moment)))
    }

    /// Bytes that are charged now.
    public var used: Int { state.withLock { $0.used + $0.lent.used } }

    /// Whether somebody waits for whom lent memory is given back.
    public var isLoanWanted: Bool { state.withLock { $0.lent.isWanted } }

    /// Bytes that are charged to a party now.
    public func used(by owner: Owner) -> Int { state.withLock { $0.owners[owner] ?? 0 } }

    /// A charge of nothing, to be enlarged.
    public func open(for owner: Owner) -> MemoryCharge { MemoryCharge(self, owner) }

    /// Exchanges a charge for another one; a smaller one of the same party is always granted.
    /// - Parameters:
    ///   - requester: Who waits when what would have to be lent is not there; nil for nobody.
    ///   - holder: When, and who is told when others need it; nil when it is not held but kept.
    fileprivate func exchange(
        _ old: Int, of payer: Owner, for new: Int, of owner: Owner, by charge: MemoryCharge,
        requester: LargeBodyMemory.Requester? = nil,
        holder: (now: ContinuousClock.Instant, wake: @Sendable () -> Void)? = nil
    ) -> MemoryGrant {
        let id = ObjectIdentifier(charge)
        var recalls: [@Sendable () -> Void] = []
        let (answer, wakes) = state.withLock { state -> (MemoryGrant, [LargeBodyMemory.Requester]) in
            let rest = (state.owners[owner] ?? 0) - (payer == owner ? old : 0)
            let (oldLoan, newLoan) = (old > part ? old : 0, new > part ? new : 0)
            let used = state.used + (new - newLoan) - (old - oldLoan)
            var wakes: [LargeBodyMemory.Requester] = []
            if new > old || payer != owner {
                guard newLoan > 0 ? rest == 0 : rest + new <= part && used <= total else {
                    if let holder, rest + new <= part {
                        recalls = state.recallable.recall(used: used, at: holder.now)
                    }
                    return (.refused, [])
                }
                if newLoan > oldLoan {
                    let (answer, others) = state.lent.lend(newLoan - oldLoan, to: requester)
                    guard answer == .granted else { return (answer, others) }
                    wakes = others
                }
            }
            if newLoan < oldLoan { wakes = state.lent.giveBack(oldLoan - newLoan, by: id) }
            if payer != owner { state.owners[payer] = Self.remaining((state.owners[payer] ?? 0) - old) }
            state.owners[owner] = Self.remaining(rest + new)
            state.used = used
            if let holder {
                state.recallable.hold(new, by: id, at: holder.now, wake: holder.wake)
                recalls = state.recallable.recall(used: used, at: holder.now)
            } else {
                state.recallable.resize(to: new, by: id)
            }
            return (.granted, wakes)
        }
        for requester in wakes { requester.wake() }
        for recall in recalls { recall() }
        return answer
    }

    /// Takes somebody out of the queue who does not wait any more.
    fileprivate func stopWaiting(_ id: ObjectIdentifier) {
        let (hasWaited, next) = state.withLock { ($0.lent.remove(id), $0.lent.next) }
        if hasWaited != nil { next?.wake() }
    }

    fileprivate func keep(_ id: ObjectIdentifier) { state.withLock { $0.recallable.keep(id) } }

    fileprivate func isRecalled(_ id: ObjectIdentifier) -> Bool { state.withLock { $0.recallable.isRecalled(id) } }

    fileprivate func isSlow(_ network: UInt64) -> Bool { state.withLock { $0.lent.isSlow(network) } }

    fileprivate func noteArrival(from network: UInt64) { state.withLock { $0.lent.hasArrived(from: network) } }

    fileprivate func noteRecall(from network: UInt64) { state.withLock { $0.lent.wasSlow(network) } }

    /// Parties that have nothing take no memory either.
    private static func remaining(_ count: Int) -> Int? { count > 0 ? count : nil }
}

/// What one body takes of a ``MemoryBudget``; given back when the last reference to it goes.
public final class MemoryCharge: Sendable {
    private struct State {
        var owner: MemoryBudget.Owner
        var count = 0
        /// The network that waits for something to be lent, or has borrowed it.
        var network: UInt64?
    }

    private let budget: MemoryBudget
    private let state: Mutex<State>

    fileprivate init(_ budget: MemoryBudget, _ owner: MemoryBudget.Owner) {
        self.budget = budget
        state = Mutex(State(owner: owner))
    }

    deinit {
        if state.withLock({ $0.network != nil }) { budget.stopWaiting(ObjectIdentifier(self)) }
        resize(to: 0)
    }

    /// The bytes that are charged.
    public var count: Int { state.withLock { $0.count } }

    /// Whether it is beyond what one party may have of the parts.
    public var isLent: Bool { count > budget.part }

    /// Makes the charge so many bytes.
    /// - Returns: Whether there is room; if not, nothing has changed. To have less is always granted.
    @discardableResult public func resize(to count: Int) -> Bool {
        state.withLock { state in
            let answer = budget.exchange(state.count, of: state.owner, for: count, of: state.owner, by: self)
            if answer == .granted { state.count = count }
            return answer == .granted
        }
    }

    /// Makes the charge so many bytes, within its party's part, which it loses when others need them.
    /// - Parameters:
    ///   - now: What time it is.
    ///   - wake: Called from any thread when the charge is recalled: it is to be made nothing.
    /// - Returns: Whether there is room; if not, nothing has changed.
    public func hold(_ count: Int, at now: ContinuousClock.Instant, wake: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            let answer = budget.exchange(
                state.count, of: state.owner, for: count, of: state.owner, by: self, holder: (now, wake))
            if answer == .granted { state.count = count }
            return answer == .granted
        }
    }

    /// Whether others need what it holds.
    public var isRecalled: Bool { budget.isRecalled(ObjectIdentifier(self)) }

    /// Makes the charge so many bytes, more than its party's part, or waits for them in a queue until the charge goes.
    /// - Parameters:
    ///   - network: From where the body comes.
    ///   - wake: Called from any thread when it is worth asking again, and when somebody waits for what this one has.
    public func borrow(_ count: Int, from network: UInt64, wake: @escaping @Sendable () -> Void) -> MemoryGrant {
        state.withLock { state in
            let requester = LargeBodyMemory.Requester(id: ObjectIdentifier(self), network: network, wake: wake)
            let answer = budget.exchange(
                state.count, of: state.owner, for: count, of: state.owner, by: self, requester: requester)
            state.network = network
            if answer == .granted { state.count = count }
            return answer
        }
    }

    /// Whether somebody waits for what was lent.
    public var isWanted: Bool { isLent && budget.isLoanWanted }

    /// Whether others come first, because a body from the same network had to give back.
    public var isSlow: Bool { state.withLock { $0.network }.map(budget.isSlow) ?? false }

    /// What was lent is given back before its body has arrived: others come first from now on.
    public func noteRecall() {
        if let network = state.withLock({ $0.network }) { budget.noteRecall(from: network) }
    }

    /// The body has arrived whole: what it holds it keeps.
    public func noteArrival() {
        budget.keep(ObjectIdentifier(self))
        if let network = state.withLock({ $0.network }) { budget.noteArrival(from: network) }
    }

    /// Charges another party from now on: the account, once it is known who asks.
    /// - Returns: Whether that party has room; if not, nothing has changed.
    public func move(to owner: MemoryBudget.Owner) -> Bool {
        state.withLock { state in
            let answer = budget.exchange(state.count, of: state.owner, for: state.count, of: owner, by: self)
            if answer == .granted { state.owner = owner }
            return answer == .granted
        }
    }
}

/// Which bodies that are still arriving lose their memory when it runs short. Pure.
///
/// Whoever began first loses it, as soon as more than three quarters are taken, so that there is room for who comes next. Nobody
/// does in his first moment: a body that is sent at once arrives, and who wants to keep others out has to send all of it
/// anew in each such moment.
struct RevocableMemory: Sendable {
    private struct Holder: Sendable {
        let since: ContinuousClock.Instant
        var count: Int
        var isRecalled = false
        let wake: @Sendable () -> Void
    }

    private let mark: Int
    /// How long nobody loses anything.
    private let moment: Duration
    private var holders: [ObjectIdentifier: Holder] = [:]

    init(total: Int, moment: Duration) {
        mark = total / 4 * 3
        self.moment = moment
    }

    /// Notes how much somebody has from now on, who can lose it.
    mutating func hold(
        _ count: Int, by id: ObjectIdentifier, at now: ContinuousClock.Instant, wake: @escaping @Sendable () -> Void
    ) {
        guard holders[id] == nil else { return resize(to: count, by: id) }
        if count > 0 { holders[id] = Holder(since: now, count: count, wake: wake) }
    }

    /// Notes how much somebody has, if he can lose it.
    mutating func resize(to count: Int, by id: ObjectIdentifier) {
        if count == 0 { keep(id) } else { holders[id]?.count = count }
    }

    /// What somebody has cannot be lost any more.
    mutating func keep(_ id: ObjectIdentifier) { if !holders.isEmpty { holders[id] = nil } }

    func isRecalled(_ id: ObjectIdentifier) -> Bool { holders[id]?.isRecalled ?? false }

    /// Takes from the eldest until no more than the mark is taken.
    /// - Parameter used: How much is taken, or would be.
    /// - Returns: Who has to be woken, to give back what they have.
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
