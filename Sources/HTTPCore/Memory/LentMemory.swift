/// What becomes of a wish for memory.
public enum Borrowing: Sendable {
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
struct LentMemory: Sendable {
    struct Borrower: Sendable {
        let id: ObjectIdentifier
        let network: UInt64
        /// Called from any thread when it is worth asking again, or somebody waits for what this one has.
        let wake: @Sendable () -> Void
    }

    static let waitingLimit = 8
    static let slowLimit = 64

    let total: Int
    private(set) var used = 0
    private var waiting: [Borrower] = []
    private var holding: [Borrower] = []
    /// The longest known first.
    private var slow: [UInt64] = []

    init(total: Int) { self.total = total }

    /// Whether somebody waits for whom it is given back.
    var isWanted: Bool { waiting.contains { !isSlow($0) } }

    /// Who is to be asked next whether there is enough.
    var next: Borrower? { waiting.first { !isSlow($0) } ?? waiting.first }

    /// Lends so much.
    /// - Parameter borrower: Who would wait for it; nil for nobody.
    /// - Returns: What became of it, and who has to be woken for that: whoever is next; or those who have something that is
    ///   waited for, and who gave up a place in the queue.
    mutating func lend(_ count: Int, to borrower: Borrower?) -> (answer: Borrowing, wakes: [Borrower]) {
        if used + count <= total, isFirst(borrower) {
            if let borrower {
                _ = remove(borrower.id)
                holding.append(borrower)
            }
            used += count
            return (.granted, next.map { [$0] } ?? [])
        }
        guard let borrower, count <= total else { return (.refused, []) }
        if waiting.contains(where: { $0.id == borrower.id }) { return (.waiting, []) }
        guard !waiting.contains(where: { $0.network == borrower.network }) else { return (.refused, []) }
        var wakes = isSlow(borrower) ? [] : holding
        if waiting.count == Self.waitingLimit {
            guard !isSlow(borrower), let last = waiting.lastIndex(where: isSlow) else { return (.refused, []) }
            wakes.append(waiting.remove(at: last))
        }
        waiting.append(borrower)
        return (.waiting, wakes)
    }

    /// - Returns: Who has to be woken.
    mutating func giveBack(_ count: Int, by id: ObjectIdentifier) -> [Borrower] {
        used -= count
        // As removeAll would, of which Swift 6.2 makes now this machine code and now that, so that two builds differ.
        holding = holding.filter { $0.id != id }
        return next.map { [$0] } ?? []
    }

    /// Takes somebody out of the queue who does not wait any more.
    mutating func remove(_ id: ObjectIdentifier) -> Borrower? {
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

    private func isSlow(_ borrower: Borrower) -> Bool { isSlow(borrower.network) }

    private func isFirst(_ borrower: Borrower?) -> Bool {
        guard let next else { return true }
        guard let borrower else { return false }
        return next.id == borrower.id || isSlow(next) && !isSlow(borrower)
    }
}
