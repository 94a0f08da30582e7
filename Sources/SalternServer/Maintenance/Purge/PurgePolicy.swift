/// The retention of expired rows and the size of a purge's slices.
public struct PurgePolicy: Sendable, Equatable {
    /// Retention of tombstones after the deletion. A device that is offline for longer must list everything again.
    public var tombstoneRetention: Duration
    /// Retention of entries of the security log.
    public var eventRetention: Duration
    /// Maximum number of rows that one statement removes.
    public var biteSize: Int
    /// Maximum of sealed bytes that one statement removes, to stay within its time limit. A single row may have more.
    public var biteBytes: Int64

    public init(
        tombstoneRetention: Duration = .seconds(90 * 86_400), eventRetention: Duration = .seconds(400 * 86_400),
        biteSize: Int = 500, biteBytes: Int64 = 64 * 1_048_576
    ) {
        self.tombstoneRetention = tombstoneRetention
        self.eventRetention = eventRetention
        self.biteSize = biteSize
        self.biteBytes = biteBytes
    }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        var findings: [String] = []
        if tombstoneRetention < .seconds(86_400) { findings.append("Tombstones must be kept for a day at least.") }
        if eventRetention < .seconds(86_400) { findings.append("Security events must be kept for a day at least.") }
        if !(1...10_000).contains(biteSize) { findings.append("A purge must remove 1 to 10000 rows at a time.") }
        return findings
    }
}
