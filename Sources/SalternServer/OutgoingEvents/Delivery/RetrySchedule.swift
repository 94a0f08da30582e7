/// The delays between attempts to deliver an event.
enum RetrySchedule {
    /// The delay after the first failure; each further one is three times as long.
    static let first = Duration.seconds(10)
    static let longest = Duration.seconds(6 * 3_600)
    /// An event of this age is parked at its next failure.
    static let lifetime = Duration.seconds(3 * 86_400)
    /// A parked event is kept for this long.
    static let parkedRetention = Duration.seconds(3 * 86_400)

    /// The delay after so many failures without a success.
    /// - Parameters:
    ///   - failures: 1 or more.
    ///   - jitter: 0 to 1: shortens the delay by up to a tenth, so that queues do not return together.
    static func delay(after failures: Int, jitter: Double) -> Duration {
        var delay = first
        for _ in 1..<max(1, min(failures, 32)) where delay < longest { delay *= 3 }
        return min(delay, longest) * (1 - 0.1 * jitter)
    }
}
