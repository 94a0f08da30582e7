internal import Glibc
public import Postgres

/// The clock whose time is stored and compared in all statements. Tests can move it.
public protocol WallClock: Sendable {
    /// The current time.
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
