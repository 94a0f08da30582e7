/// Limits the effects of a stream's events, against a hostile server with continuous events.
///
/// A number of events has its effect immediately. Each further one waits.
struct EventPace {
    typealias Instant = ContinuousClock.Instant

    /// The number of events with an immediate effect after a quiet period.
    static let burst = 20
    /// The interval at which one more event has its effect.
    static let interval = Duration.milliseconds(250)

    /// The time at which the whole burst is available again.
    private var full: Instant

    init(at now: Instant) { full = now }

    /// Counts an event.
    /// - Returns: The wait before the next one is read.
    mutating func wait(at now: Instant) -> Duration {
        full = max(full, now) + Self.interval
        return max(.zero, full - now - Self.interval * Self.burst)
    }
}
