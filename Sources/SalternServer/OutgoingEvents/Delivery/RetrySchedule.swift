internal import Postgres

/// The delays between attempts to deliver an event.
enum RetrySchedule {
    /// The delay after the first failure. Each further delay is three times as long.
    static let first = Duration.seconds(10)
    static let longest = Duration.seconds(6 * 3_600)
    /// An event of this age is parked at its next failure.
    static let lifetime = Duration.seconds(3 * 86_400)
    /// After this number of failures without a success an event is parked at any age, because a wrong clock can have
    /// set the begin of its age. Attempts of a whole lifetime are fewer.
    static let attemptLimit: Int32 = 30
    /// A parked event is kept for this long.
    static let parkedRetention = Duration.seconds(3 * 86_400)

    /// Returns the latest due time that a delay or a lease can have set. A later one was set while the database's clock
    /// was ahead, and such a queue is due at once.
    static func latestDue(at now: Timestamp) -> Timestamp { now + longest + EventLease.duration }

    /// Returns the delay after a number of failures without a success.
    /// - Parameters:
    ///   - failures: At least 1.
    ///   - jitter: 0 to 1. Shortens the delay by up to a tenth, so that queues do not become due together.
    static func delay(after failures: Int, jitter: Double) -> Duration {
        var delay = first
        for _ in 1..<max(1, min(failures, 32)) where delay < longest { delay *= 3 }
        return min(delay, longest) * (1 - 0.1 * jitter)
    }
}
