internal import Postgres

/// The delays after consecutive failures.
///
/// There is deliberately no limit for a day, with which an attacker could lock the owner out. In the long run
/// ``longestDelay`` permits one attempt a minute at each counter. An account has ``KnownDevice/slotCount`` + 2 counters
/// (``AttemptCounter``), so the sum is 18 attempts a minute, 26,000 a day.
enum AttemptPolicy {
    /// Consecutive failures without a delay.
    static let freeFailures = 4
    /// The longest delay. The owner with the right key never waits longer.
    static let longestDelay = Duration.seconds(60)
    /// The tolerated difference between two nodes' copies of the database's clock.
    static let clockSlack = Duration.seconds(5)
    /// A streak ends if its last failure is this old.
    static let memory = Duration.seconds(86_400)
    /// Rows without a new failure for this time are removed.
    static let retention = Duration.seconds(30 * 86_400)

    /// Returns the delay after consecutive failures: one second from the fifth, doubled with each further one, at most
    /// ``longestDelay``.
    static func delay(afterFailures failures: Int) -> Duration {
        let doublings = failures - freeFailures - 1
        guard doublings >= 0 else { return .zero }
        // With at most 30 doublings the shift stays within an integer.
        return min(.seconds(1 << min(doublings, 30)), longestDelay)
    }

    /// Returns the latest valid end of a block. A later one was set by a wrong clock and is ignored.
    static func latestEnd(at now: Timestamp) -> Timestamp { now + longestDelay + clockSlack }

    /// Returns the remaining time of a block. Nil if it is over or invalid.
    static func wait(until end: Timestamp, at now: Timestamp) -> Duration? {
        guard end > now, end <= latestEnd(at: now) else { return nil }
        return min(end - now, longestDelay)
    }

    /// Returns the end of the block after the first consecutive failure, the second, and so on. The last value holds
    /// for all further failures.
    static func blocks(failingAt now: Timestamp) -> [Timestamp] {
        var delays = [delay(afterFailures: 1)]
        while delays[delays.count - 1] < longestDelay { delays.append(delay(afterFailures: delays.count + 1)) }
        return delays.map { now + $0 }
    }
}
