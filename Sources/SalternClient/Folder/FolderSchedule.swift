/// Schedules the examination of changes in a watched folder. It is pure: the caller passes the time.
///
/// An entry is due after a quiet period, and at the latest some time after its first change. An entry that soon changes
/// again each time is delayed more and more. Otherwise a database or a log that is always written would be sent, and
/// kept as a version, without end.
struct FolderSchedule: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The quiet period of an entry.
    var quiet = Duration.seconds(1)
    /// The longest time after the first change.
    var longest = Duration.seconds(10)
    /// The period after an examination in which another change continues a series.
    var soon = Duration.seconds(30)
    /// The number of entries of a series that are not delayed.
    var undelayed = 3
    /// The delay after those; it doubles each time.
    var firstDelay = Duration.seconds(10)
    /// The longest delay.
    var lastDelay = Duration.seconds(320)

    /// The path of the root, which represents the whole folder.
    static let everything: [UInt8] = []

    private struct Waiting {
        var first: Instant
        var last: Instant
    }

    private struct Examined {
        var at: Instant
        /// The number of examinations in a row that came soon after the previous one.
        var series: Int
        var delay: Duration
    }

    private var waiting: [[UInt8]: Waiting] = [:]
    private var examined: [[UInt8]: Examined] = [:]

    /// Records a change of an entry.
    mutating func note(_ path: [UInt8], at now: Instant) {
        var path = path
        if waiting[Self.everything] != nil { path = Self.everything }
        waiting[path, default: Waiting(first: now, last: now)].last = now
        let isCrowded = waiting.count > FolderFocus.limit
        guard isCrowded || path == Self.everything, waiting.count > 1 else { return }
        let first = waiting.values.map(\.first).min() ?? now
        waiting = [Self.everything: Waiting(first: first, last: now)]
    }

    /// The time at which the next entry is due; nil when none waits.
    var nextDue: Instant? { waiting.map { due($0.key, $0.value) }.min() }

    private func due(_ path: [UInt8], _ entry: Waiting) -> Instant {
        let due = min(entry.last + quiet, entry.first + longest)
        return examined[path].map { max(due, $0.at + $0.delay) } ?? due
    }

    /// Removes and returns the entries that are due.
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

    /// Removes all waiting entries, because everything is examined now.
    mutating func takeAll() { waiting = [:] }

    private func delay(_ series: Int) -> Duration {
        guard series >= undelayed else { return .zero }
        return min(firstDelay * (1 << min(series - undelayed, 16)), lastDelay)
    }
}

/// The part of a folder and its collection that a round examines. Both sides are equal outside of it.
struct FolderFocus: Hashable, Sendable {
    /// Entries of the folder: the bytes of their paths on the disk, from the root. A folder includes all of its
    /// content.
    var entries: Set<[UInt8]> = []
    /// Items of the collection.
    var items: Set<ItemID> = []

    /// The largest focus. Above it, examining the whole folder is faster.
    static let limit = 1_000

    var isEmpty: Bool { entries.isEmpty && items.isEmpty }
    var isTooLarge: Bool { entries.count + items.count > Self.limit }

    mutating func formUnion(_ other: FolderFocus) {
        entries.formUnion(other.entries)
        items.formUnion(other.items)
    }

    /// Returns true when one of the entries is the path, or a folder above it.
    static func covers(_ entries: Set<[UInt8]>, _ path: [UInt8]) -> Bool {
        if entries.contains(path) { return true }
        return path.indices.contains { path[$0] == UInt8(ascii: "/") && entries.contains(Array(path[..<$0])) }
    }
}

/// The results that later rounds of a watched folder reuse.
struct FolderMemory: Sendable {
    /// Entries that make every examination incomplete. While there are any, no missing file counts as deleted.
    var obstacles: Set<[UInt8]> = []
    /// Names of entries that are not files of the folder.
    var skipped: Set<FolderPath> = []
    /// Failed or held actions, which each later round examines.
    var unfinished = FolderFocus()

    /// Replaces the results of the examined entries.
    mutating func take(_ scan: FolderTree.Scan, of entries: Set<[UInt8]>) {
        obstacles = obstacles.filter { !FolderFocus.covers(entries, $0) }.union(scan.obstacles)
        skipped = skipped.filter { !FolderFocus.covers(entries, Array($0.text.utf8)) }.union(scan.skipped)
    }
}
