/// The result of a request for memory from the reserve.
public enum MemoryGrant: Sendable {
    case granted
    /// The borrower is in the queue, and is woken when it should request again.
    case waiting
    case refused
}

/// The reserve for bodies beyond their sender's quota, and the queue for it. Pure.
///
/// - The queue is first in, first out. It has one entry for each network, so no network fills it.
/// - A borrower keeps its memory while the queue is empty. Otherwise it must return memory that it has held for long.
///   Its network is slow from then on.
/// - Slow networks queue behind others, return memory at once, and never cause others to return memory. Otherwise two
///   slow senders would take it from each other permanently.
/// - A complete body ends a network's slowness.
struct LargeBodyMemory: Sendable {
    struct Requester: Sendable {
        let id: ObjectIdentifier
        let network: UInt64
        /// Called from any thread when a new request may succeed, or when others wait for this borrower's memory.
        let wake: @Sendable () -> Void
    }

    static let waitingLimit = 8
    static let slowLimit = 64

    let total: Int
    private(set) var used = 0
    private var waiting: [Requester] = []
    private var holding: [Requester] = []
    /// The slow networks, the longest known first.
    private var slow: [UInt64] = []

    init(total: Int) { self.total = total }

    /// True when a borrower that is not slow waits.
    var isWanted: Bool { waiting.contains { !isSlow($0) } }

    /// The first in the queue.
    var next: Requester? { waiting.first { !isSlow($0) } ?? waiting.first }

    /// Grants memory, or adds the borrower to the queue.
    /// - Parameter requester: The borrower to queue. Nil for a request that does not wait.
    /// - Returns: The result, and the borrowers to wake: the next in the queue after a grant. Otherwise the holders of
    ///   memory that is waited for, and a borrower that lost its queue slot.
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

    /// - Returns: The borrowers to wake.
    mutating func giveBack(_ count: Int, by id: ObjectIdentifier) -> [Requester] {
        used -= count
        // Equals removeAll, for which Swift 6.2 generates varying machine code, so that two builds differ.
        holding = holding.filter { $0.id != id }
        return next.map { [$0] } ?? []
    }

    /// Removes a borrower from the queue.
    mutating func remove(_ id: ObjectIdentifier) -> Requester? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0) }
    }

    /// Marks a network as slow: one of its bodies had to return memory.
    mutating func wasSlow(_ network: UInt64) {
        hasArrived(from: network)
        if slow.count == Self.slowLimit { slow.removeFirst() }
        slow.append(network)
    }

    /// Ends a network's slowness: one of its bodies is complete.
    mutating func hasArrived(from network: UInt64) { slow.removeAll { $0 == network } }

    func isSlow(_ network: UInt64) -> Bool { slow.contains(network) }

    private func isSlow(_ requester: Requester) -> Bool { isSlow(requester.network) }

    private func isFirst(_ requester: Requester?) -> Bool {
        guard let next else { return true }
        guard let requester else { return false }
        return next.id == requester.id || isSlow(next) && !isSlow(requester)
    }
}
