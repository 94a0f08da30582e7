internal import Postgres

/// How failures in a row delay the next attempt.
enum AttemptPolicy {
    /// The first failure that is followed by a delay.
    static let freeFailures = 4
    /// No delay is longer: a person who has the right key is never kept out for more.
    static let longestDelay = Duration.seconds(60)
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

    /// Until when a subject is blocked that fails now for the first time in a row, the second time, and so on; the last
    /// one holds for all further times.
    static func blocks(failingAt now: Timestamp) -> [Timestamp] {
        (1...(freeFailures + 7)).map { now + delay(afterFailures: $0) }
    }
}
