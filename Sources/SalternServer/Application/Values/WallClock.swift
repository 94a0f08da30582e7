internal import Glibc
public import Postgres

/// Where the time comes from that is stored and compared: the same clock for every statement, so that tests can
/// move it.
public protocol WallClock: Sendable {
    /// The time now.
    var now: Timestamp { get }
}

/// The system's clock.
public struct SystemWallClock: WallClock {
    public init() {}

    public var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(unixMicroseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
    }
}
