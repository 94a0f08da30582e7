/// The memory that a process gives to what clients send and do not take, whatever the number of its loops.
public struct ServerBudgets: Sendable {
    /// Bodies of senders that are known, by account.
    public let bodies: MemoryBudget
    /// Bodies of which only the address is known.
    public let unidentifiedBodies: MemoryBudget
    /// Replies that wait for their clients, by address.
    public let output: MemoryBudget

    /// By default a process has 200 MiB, so that with everything else it stays below 256 MB.
    public init(
        bodies: MemoryBudget = MemoryBudget(total: 48 * mebibyte, loan: 56 * mebibyte),
        unidentifiedBodies: MemoryBudget = MemoryBudget(total: 8 * mebibyte, loan: 0),
        output: MemoryBudget = MemoryBudget(total: 64 * mebibyte, loan: 24 * mebibyte)
    ) {
        self.bodies = bodies
        self.unidentifiedBodies = unidentifiedBodies
        self.output = output
    }

    public static let mebibyte = 1_048_576
}
