/// The memory of a process for bodies and for unread output, independent of the number of its loops.
///
/// Bytes limit the number of large bodies in memory at once: it is the reserve of their budget, divided by the peak of
/// each (``MemoryFactor/peak(of:)``).
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
