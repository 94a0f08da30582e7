public import Postgres
public import SalternServer
internal import Synchronization

/// A clock that only tests move.
public final class ManualClock: WallClock {
    private let time: Mutex<Timestamp>

    /// Creates a clock with the time `now`, by default 2026-01-01 00:00:00 UTC.
    public init(_ now: Timestamp = Timestamp(unixSeconds: 1_767_225_600)) {
        time = Mutex(now)
    }

    public var now: Timestamp { time.withLock { $0 } }

    /// Moves the clock forward.
    public func advance(by duration: Duration) {
        time.withLock { $0 = $0 + duration }
    }
}
