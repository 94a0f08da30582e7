/// How long what nobody needs any more is kept.
public struct PurgePolicy: Sendable, Equatable {
    /// A tombstone is kept so long after the item was deleted. A device that was away for longer has to list everything.
    public var tombstoneRetention: Duration
    /// Entries of the security log are kept so long.
    public var eventRetention: Duration
    /// How many rows one statement removes at most.
    public var biteSize: Int
    /// How many sealed bytes one statement removes at most; a single row may have more. So that none comes near its time-out.
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

    /// What is wrong with the policy, a sentence each.
    var findings: [String] {
        var findings: [String] = []
        if tombstoneRetention < .seconds(86_400) { findings.append("Tombstones must be kept for a day at least.") }
        if eventRetention < .seconds(86_400) { findings.append("Security events must be kept for a day at least.") }
        if !(1...10_000).contains(biteSize) { findings.append("A purge must remove 1 to 10000 rows at a time.") }
        return findings
    }
}
