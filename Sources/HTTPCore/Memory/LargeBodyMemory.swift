/// What becomes of a wish for memory.
public enum MemoryGrant: Sendable {
    case granted
    /// It will be worth asking again: the borrower is woken then.
    case waiting
    case refused
}

/// Memory that is lent to bodies beyond their party's part, and who waits for some. Pure.
///
/// - It is lent in the order in which it was asked for. Of one network one waits, so nobody fills the queue.
/// - Whoever has it keeps it while nobody waits. When somebody does, whoever has had it for long has to give it back, and
///   its network is slow from then on: it waits behind those that are not, gives back to them at once, and nobody gives
///   back because of it. Otherwise two slow senders would take it from each other for ever. Slow is who was slow last: a
///   body that arrives whole ends it.
struct LargeBodyMemory: Sendable {
    struct Requester: Sendable {
        let id: ObjectIdentifier
        let network: UInt64
        /// Called from any thread when it is worth asking again, or somebody waits for what this one has.
        let wake: @Sendable () -> Void
    }

    static let waitingLimit = 8
    static let slowLimit = 64

    let total: Int
    private(set) var used = 0
    private var waiting: [Requester] = []
    private var holding: [Requester] = []
    /// The longest known first.
    private var slow: [UInt64] = []

    init(total: Int) { self.total = total }

    /// Whether somebody waits for whom it is given back.
    var isWanted: Bool { waiting.contains { !isSlow($0) } }

    /// Who is to be asked next whether there is enough.
    var next: Requester? { waiting.first { !isSlow($0) } ?? waiting.first }

    /// Lends so much.
    /// - Parameter requester: Who would wait for it; nil for nobody.
    /// - Returns: What became of it, and who has to be woken for that: whoever is next; or those who have something that is
    ///   waited for, and who gave up a place in the queue.
    mutating func lend(_ count: Int, to requester: Requester?) -> (answer: MemoryGrant, wakes: [Requester]) {
        if used + count <= total, isFirst(requester) {
            if let requester {
                _ = remove(requester.id)
                holding.append(requester)
            }
            used += count
            return (.granted, next.map { [$0] } ?? [])
        }
        guard let requester, count <= total else { return (.refused, []) }
        if waiting.contains(where: { $0.id == requester.id }) { return (.waiting, []) }
        guard !waiting.contains(where: { $0.network == requester.network }) else { return (.refused, []) }
        var wakes = isSlow(requester) ? [] : holding
        if waiting.count == Self.waitingLimit {
            guard !isSlow(requester), let last = waiting.lastIndex(where: isSlow) else { return (.refused, []) }
            wakes.append(waiting.remove(at: last))
        }
        waiting.append(requester)
        return (.waiting, wakes)
    }

    /// - Returns: Who has to be woken.
    mutating func giveBack(_ count: Int, by id: ObjectIdentifier) -> [Requester] {
        used -= count
        // As removeAll would, of which Swift 6.2 makes now this machine code and now that, so that two builds differ.
        holding = holding.filter { $0.id != id }
        return next.map { [$0] } ?? []
    }

    /// Takes somebody out of the queue who does not wait any more.
    mutating func remove(_ id: ObjectIdentifier) -> Requester? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0) }
    }

    /// A body of the network had to give back what it had for too long.
    mutating func wasSlow(_ network: UInt64) {
        hasArrived(from: network)
        if slow.count == Self.slowLimit { slow.removeFirst() }
        slow.append(network)
    }

    /// A body of the network has arrived whole.
    mutating func hasArrived(from network: UInt64) { slow.removeAll { $0 == network } }

    func isSlow(_ network: UInt64) -> Bool { slow.contains(network) }

    private func isSlow(_ requester: Requester) -> Bool { isSlow(requester.network) }

    private func isFirst(_ requester: Requester?) -> Bool {
        guard let next else { return true }
        guard let requester else { return false }
        return next.id == requester.id || isSlow(next) && !isSlow(requester)
    }
}
