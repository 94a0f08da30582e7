public import Postgres
internal import Glibc
internal import Synchronization

/// The database's time, as a node has it between two comparisons. Everything that is stored and compared is stamped with
/// it, so a node whose own clock is wrong does the same as all others.
///
/// The node's steady clock counts on from the last comparison, so not even a jump of its wall clock is noticed in what
/// the node does. One for all loops.
public final class DatabaseClock: WallClock {
    /// Beyond this difference one of the two clocks is badly wrong, nobody knows which, and nothing is removed.
    public static let tolerance = Duration.seconds(30)

    private let node: any WallClock
    private let steady: @Sendable () -> Reading
    /// Microseconds from the steady clock's zero to the Unix epoch by the database's clock.
    private let offset: Atomic<Int64>
    private let isSet = Atomic(false)

    /// Microseconds of a clock that never jumps.
    public typealias Reading = Int64

    /// Until it is set, it shows the node's own time.
    /// - Parameters:
    ///   - node: The node's own wall clock.
    ///   - steady: Counts on between comparisons; goes on while the machine sleeps.
    public init(
        node: any WallClock = SystemWallClock(), steady: @escaping @Sendable () -> Reading = { bootTime() }
    ) {
        self.node = node
        self.steady = steady
        offset = Atomic(node.now.unixMicroseconds - steady())
    }

    public var now: Timestamp { Timestamp(unixMicroseconds: steady() + offset.load(ordering: .relaxed)) }

    /// What ``set(to:askedAt:)`` needs to be told.
    public var reading: Reading { steady() }

    /// Sets it by what the database said when it was asked at `askedAt`, until now. What the way there and back may explain
    /// changes nothing.
    public func set(to time: Timestamp, askedAt: Reading) {
        let answeredAt = steady()
        let uncertainty = (answeredAt - askedAt) / 2
        let found = time.unixMicroseconds - askedAt - uncertainty
        let isFirst = isSet.exchange(true, ordering: .relaxed) == false
        if isFirst || abs(found - offset.load(ordering: .relaxed)) > uncertainty {
            offset.store(found, ordering: .relaxed)
        }
    }

    /// How far the node's own clock is ahead of the database's, negative when it is behind; nil before they were compared.
    public var difference: Duration? { isSet.load(ordering: .relaxed) ? node.now - now : nil }

    /// Whether the two clocks were compared and agree well enough to remove what is old.
    public var isTrusted: Bool { difference.map { abs($0) <= Self.tolerance } ?? false }
}

/// `CLOCK_BOOTTIME` in microseconds.
public func bootTime() -> DatabaseClock.Reading {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
}

func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
