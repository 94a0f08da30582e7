/// Decides whether a destination is attempted. After failures in a row one attempt at a time tests it, at growing intervals, so
/// a dead receiver costs next to nothing and its queues keep their own delays.
///
/// A pure value: its user passes the time.
struct CircuitBreaker: Sendable, Equatable {
    /// So many failures in a row open it.
    static let threshold = 5
    static let firstPause = Duration.seconds(10)
    static let longestPause = Duration.seconds(300)

    private enum State: Sendable, Equatable {
        case closed
        /// Nothing is attempted before the moment.
        case open(until: ContinuousClock.Instant)
        /// One attempt is under way.
        case testing
    }

    private var state = State.closed
    private var failures = 0

    /// Whether the last attempts failed.
    var isOpen: Bool { state != .closed }

    /// The number of attempts that may begin now, at most `limit`.
    func allowance(_ now: ContinuousClock.Instant, limit: Int) -> Int {
        switch state {
        case .closed: limit
        case .open(let until): until <= now ? min(limit, 1) : 0
        case .testing: 0
        }
    }

    /// Notes that an attempt begins.
    mutating func begin() {
        if case .open = state { state = .testing }
    }

    /// Notes that the attempt that was allowed was not made.
    mutating func abandon(_ now: ContinuousClock.Instant) {
        if case .testing = state { state = .open(until: now) }
    }

    mutating func succeed() { self = CircuitBreaker() }

    mutating func fail(_ now: ContinuousClock.Instant) {
        failures += 1
        guard failures >= Self.threshold else { return }
        var pause = Self.firstPause
        for _ in Self.threshold..<min(failures, Self.threshold + 8) { pause *= 2 }
        // Attempts that began before it opened end later: they lengthen nothing.
        if case .open(let until) = state, until > now {
            failures -= 1
            return
        }
        state = .open(until: now + min(pause, Self.longestPause))
    }
}
