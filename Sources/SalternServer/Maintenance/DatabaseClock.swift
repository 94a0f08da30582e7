internal import Glibc
public import Postgres
internal import Synchronization

/// The database's time on a node between two comparisons. All stored and compared times come from it, so a node with a
/// wrong clock behaves like all others.
///
/// The node's steady clock continues from the last comparison, so jumps of its wall clock have no effect. All loops
/// share one.
public final class DatabaseClock: WallClock {
    /// The largest tolerated difference. Beyond it either clock may be wrong, and nothing is removed.
    public static let tolerance = Duration.seconds(30)

    private let node: any WallClock
    private let steady: @Sendable () -> Reading
    /// Microseconds from the steady clock's zero to the Unix epoch by the database's clock.
    private let offset: Atomic<Int64>
    private let isSet = Atomic(false)

    /// Microseconds of a clock that never jumps.
    public typealias Reading = Int64

    /// Starts with the node's own time until it is set.
    ///
    /// - Parameters:
    ///   - node: The node's own wall clock.
    ///   - steady: Counts between comparisons, and continues while the machine sleeps.
    public init(
        node: any WallClock = SystemWallClock(), steady: @escaping @Sendable () -> Reading = { bootTime() }
    ) {
        self.node = node
        self.steady = steady
        offset = Atomic(node.now.unixMicroseconds - steady())
    }

    public var now: Timestamp { Timestamp(unixMicroseconds: steady() + offset.load(ordering: .relaxed)) }

    /// The present reading, as an argument of ``set(to:askedAt:)``.
    public var reading: Reading { steady() }

    /// Sets the clock by a time that the database returned between `askedAt` and now. A difference within the round
    /// trip's uncertainty changes nothing.
    public func set(to time: Timestamp, askedAt: Reading) {
        let answeredAt = steady()
        let uncertainty = (answeredAt - askedAt) / 2
        let found = time.unixMicroseconds - askedAt - uncertainty
        let isFirst = isSet.exchange(true, ordering: .relaxed) == false
        if isFirst || abs(found - offset.load(ordering: .relaxed)) > uncertainty {
            offset.store(found, ordering: .relaxed)
        }
    }

    /// The difference by which the node's own clock is ahead of the database's, negative if it is behind. Nil before
    /// the first comparison.
    public var difference: Duration? { isSet.load(ordering: .relaxed) ? node.now - now : nil }

    /// True if the clocks were compared and agree sufficiently for the purge.
    public var isTrusted: Bool { difference.map { abs($0) <= Self.tolerance } ?? false }
}

/// `CLOCK_BOOTTIME` in microseconds.
public func bootTime() -> DatabaseClock.Reading {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
}

func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }

extension DatabaseClock {
    /// Sets the clock by the database's time.
    public func compare(with database: PostgresClient) async throws(PostgresError) {
        let asked = reading
        guard let found = try await database.execute(ReadDatabase()).first else { return }
        set(to: found.time, askedAt: asked)
    }

    /// Returns the database's time, for programs that need it once.
    public static func now(of database: PostgresClient) async throws(PostgresError) -> Timestamp {
        let clock = DatabaseClock()
        try await clock.compare(with: database)
        return clock.now
    }
}

/// The agreement of a node's clock with the database's. Changes are logged for the operator.
enum ClockAgreement: Sendable, Equatable {
    case agrees
    /// Worth correcting, without consequences: the node uses the database's time.
    case differs
    /// The purge is suspended.
    case isFarOff

    /// One second: more than NTP leaves, and below a noticeable difference.
    private static let negligible = Duration.seconds(1)

    init(difference: Duration) {
        switch abs(difference) {
        case ...Self.negligible: self = .agrees
        case ...DatabaseClock.tolerance: self = .differs
        default: self = .isFarOff
        }
    }
}
