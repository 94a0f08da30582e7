/// When changes of a watched folder are examined. Pure: the caller gives the time.
///
/// An entry is due once it has been quiet for a while, and at the latest some time after its first change. One that
/// changes again soon after each time is due less and less often: otherwise a database or a log that is always written
/// would be sent, and kept as a version, without end.
struct FolderSchedule: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// How long an entry has to be quiet.
    var quiet = Duration.seconds(1)
    /// How long after the first change it waits for that at most.
    var longest = Duration.seconds(10)
    /// A change sooner than this after an entry was examined continues a series.
    var soon = Duration.seconds(30)
    /// How many entries of a series are not delayed.
    var undelayed = 3
    /// The delay behind those; it doubles each time.
    var firstDelay = Duration.seconds(10)
    /// The longest delay.
    var lastDelay = Duration.seconds(320)

    /// Stands for the whole folder: the path of its root.
    static let everything: [UInt8] = []

    private struct Waiting {
        var first: Instant
        var last: Instant
    }

    private struct Examined {
        var at: Instant
        /// How many times in a row it was examined soon after the time before.
        var series: Int
        var delay: Duration
    }

    private var waiting: [[UInt8]: Waiting] = [:]
    private var examined: [[UInt8]: Examined] = [:]

    /// Notes a change of an entry.
    mutating func note(_ path: [UInt8], at now: Instant) {
        var path = path
        if waiting[Self.everything] != nil { path = Self.everything }
        waiting[path, default: Waiting(first: now, last: now)].last = now
        let isCrowded = waiting.count > FolderFocus.limit
        guard isCrowded || path == Self.everything, waiting.count > 1 else { return }
        let first = waiting.values.map(\.first).min() ?? now
        waiting = [Self.everything: Waiting(first: first, last: now)]
    }

    /// When the next entry is due; nil when none waits.
    var nextDue: Instant? { waiting.map { due($0.key, $0.value) }.min() }

    private func due(_ path: [UInt8], _ entry: Waiting) -> Instant {
        let due = min(entry.last + quiet, entry.first + longest)
        return examined[path].map { max(due, $0.at + $0.delay) } ?? due
    }

    /// Returns the entries that are due, which wait no longer.
    mutating func take(at now: Instant) -> Set<[UInt8]> {
        let due = Set(waiting.filter { self.due($0.key, $0.value) <= now }.keys)
        for path in due {
            let first = waiting[path]?.first ?? now
            let before = examined[path].flatMap { first - $0.at <= max(soon, $0.delay) ? $0.series : nil }
            let series = before.map { $0 + 1 } ?? 0
            examined[path] = Examined(at: now, series: series, delay: delay(series))
            waiting[path] = nil
        }
        examined = examined.filter { now - $0.value.at <= max(soon, $0.value.delay) }
        return due
    }

    /// Forgets what waits: everything is examined now.
    mutating func takeAll() { waiting = [:] }

    private func delay(_ series: Int) -> Duration {
        guard series >= undelayed else { return .zero }
        return min(firstDelay * (1 << min(series - undelayed, 16)), lastDelay)
    }
}
