internal import Foundation

/// The server's clock, from the `Date` field of its last reply (RFC 9110 section 6.6.1).
final class ServerClock: Sendable {
    /// Two clocks that differ by more than this do not confirm each other, in seconds.
    static let tolerance = 86_400.0

    private struct Reading {
        var time: Date
        var moment: ContinuousClock.Instant
    }

    private let last = Locked<Reading?>(nil)

    /// Stores the time of a reply. A reply without a valid time changes nothing.
    func note(_ head: HTTPReplyHead, at moment: ContinuousClock.Instant = .now) {
        guard let time = head["Date"].flatMap(Self.time) else { return }
        last.withLock { $0 = Reading(time: time, moment: moment) }
    }

    /// Returns the server's present time; nil before the first reply.
    func time(at moment: ContinuousClock.Instant = .now) -> Date? {
        last.withLock { $0 }.map { $0.time.addingTimeInterval((moment - $0.moment) / .seconds(1)) }
    }

    /// Checks that a reading of the local clock agrees with the server's clock. Returns false before the first reply.
    func confirms(_ local: Date, at moment: ContinuousClock.Instant = .now) -> Bool {
        guard let server = time(at: moment) else { return false }
        return abs(server.timeIntervalSince(local)) <= Self.tolerance
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Reads an IMF-fixdate (RFC 9110 section 5.6.7), the form that senders have to use.
    static func time(_ text: String) -> Date? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", words[1].count == 2, words[3].count == 4,
            let month = months.firstIndex(of: String(words[2]))
        else { return nil }
        let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
        return try? Date.ISO8601FormatStyle().parse("\(words[3])-\(number)-\(words[1])T\(words[4])Z")
    }
}
