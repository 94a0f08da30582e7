/// Limits attempts to a failing destination. After several failures in a row, it permits one test attempt at a time, at
/// growing intervals. A receiver that is down then costs little, and its queues keep their own delays.
///
/// It is a pure value: callers pass the time.
struct CircuitBreaker: Sendable, Equatable {
    /// The failures in a row that open it.
    static let threshold = 5
    static let firstPause = Duration.seconds(10)
    static let longestPause = Duration.seconds(300)

    /// The interval after the failure that opens it. It doubles up to ``longestPause``.
    let pause: Duration

    private enum State: Sendable, Equatable {
        case closed
        /// No attempt begins before this time.
        case open(until: ContinuousClock.Instant)
        /// One attempt is under way.
        case testing
    }

    private var state = State.closed
    private var failures = 0

    init(pause: Duration = firstPause) {
        self.pause = pause
    }

    /// True if the last attempts failed.
    var isOpen: Bool { state != .closed }

    /// Returns the number of attempts that may begin now, at most `limit`.
    func allowance(_ now: ContinuousClock.Instant, limit: Int) -> Int {
        switch state {
        case .closed: limit
        case .open(let until): until <= now ? min(limit, 1) : 0
        case .testing: 0
        }
    }

    /// Records the beginning of an attempt.
    mutating func begin() {
        if case .open = state { state = .testing }
    }

    /// Records that a permitted attempt was not made.
    mutating func abandon(_ now: ContinuousClock.Instant) {
        if case .testing = state { state = .open(until: now) }
    }

    mutating func succeed() { self = CircuitBreaker(pause: pause) }

    mutating func fail(_ now: ContinuousClock.Instant) {
        failures += 1
        guard failures >= Self.threshold else { return }
        var pause = pause
        for _ in Self.threshold..<min(failures, Self.threshold + 8) { pause *= 2 }
        // An attempt that began before the breaker opened may end later. It does not extend the interval.
        if case .open(let until) = state, until > now {
            failures -= 1
            return
        }
        state = .open(until: now + min(pause, Self.longestPause))
    }
}
