internal import Postgres

/// How failures in a row delay the next attempt.
enum AttemptPolicy {
    /// The first failure that is followed by a delay.
    static let freeFailures = 4
    /// No delay is longer: a person who has the right key is never kept out for more.
    static let longestDelay = Duration.seconds(60)
    /// How far the clocks of two nodes may be apart, which both go by the database's.
    static let clockSlack = Duration.seconds(5)
    /// A streak whose last failure is so old is over.
    static let memory = Duration.seconds(86_400)
    /// Rows that nothing was added to for so long are removed.
    static let retention = Duration.seconds(30 * 86_400)

    /// The delay after so many failures in a row: one second from the fifth, then twice the one before.
    static func delay(afterFailures failures: Int) -> Duration {
        let doublings = failures - freeFailures - 1
        guard doublings >= 0 else { return .zero }
        return doublings < 6 ? .seconds(1 << doublings) : longestDelay
    }

    /// A block that ends later than this was begun by a clock that was wrong, and does not count.
    static func latestEnd(at now: Timestamp) -> Timestamp { now + longestDelay + clockSlack }

    /// How long there is to wait for the end of a block; nil when it is over, or does not count.
    static func wait(until end: Timestamp, at now: Timestamp) -> Duration? {
        guard end > now, end <= latestEnd(at: now) else { return nil }
        return min(end - now, longestDelay)
    }

    /// Until when a subject is blocked that fails now for the first time in a row, the second time, and so on; the last
    /// one holds for all further times.
    static func blocks(failingAt now: Timestamp) -> [Timestamp] {
        (1...(freeFailures + 7)).map { now + delay(afterFailures: $0) }
    }
}
