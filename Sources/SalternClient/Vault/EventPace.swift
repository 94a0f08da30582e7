/// Limits the effects of a stream's events: a server may be hostile, and send one after another.
///
/// A number of events has its effect at once. Each further one waits until the pace has room for it.
struct EventPace {
    typealias Instant = ContinuousClock.Instant

    /// The number of events that have an effect at once, after a quiet time.
    static let burst = 20
    /// The time after which one more has.
    static let interval = Duration.milliseconds(250)

    /// When all of the burst is there again.
    private var full: Instant

    init(at now: Instant) { full = now }

    /// Takes an event.
    /// - Returns: How long to wait before the next one is read.
    mutating func wait(at now: Instant) -> Duration {
        full = max(full, now) + Self.interval
        return max(.zero, full - now - Self.interval * Self.burst)
    }
}
