internal import Synchronization

extension FolderSync {
    /// Keeps both sides equal until the task is cancelled. It runs a round at once, and after each change in the
    /// folder, in the vault or on the server. Many deletions are held back, and other changes continue.
    /// ``FolderSettings/allowsDeletions`` applies to the first round, even without the server.
    ///
    /// A change in the folder is examined after one quiet second, and after ten seconds at the latest. A file that
    /// changes continuously is sent less often: at least every six minutes. Such a round examines only changes.
    /// Everything is examined once in an hour. The kernel does not report writes through a memory map, or by others in
    /// a network file system.
    ///
    /// If the kernel has no room to watch every folder, everything is examined each minute, and the first such report
    /// has a warning (``FolderWarning/Kind/unwatched``).
    /// - Parameter report: Is called after each round.
    /// - Throws: ``FolderError``, and the errors of `report`.
    public func watch(_ report: @Sendable (FolderReport) async throws -> Void) async throws {
        try await watch(.kernel, every: .seconds(60), report)
    }

    private static let wholePeriod = Duration.seconds(3_600)

    func watch(
        _ calls: FolderWatchCalls, every interval: Duration, by schedule: FolderSchedule = FolderSchedule(),
        _ report: @Sendable (FolderReport) async throws -> Void
    ) async throws {
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watcher = FolderWatcher(root, calls, schedule) { continuation.yield() }
        let vault = self.vault
        let news = WatchedChanges()
        let changes = vault.changes(of: owned.owner)
        let lends = settings.lendsStore
        continuation.yield()
        let following = Task { () -> VaultError? in
            defer { continuation.finish() }
            do throws(VaultError) {
                if lends {
                    try await vault.listen {
                        news.receive()
                        continuation.yield()
                    }
                } else {
                    try await vault.keepInSync()
                }
            } catch {
                return error
            }
            return nil
        }
        let local = Task {
            for await ids in changes {
                news.add(ids)
                continuation.yield()
            }
        }
        var timer: Task<Void, any Error>?
        defer { allowed = settings.allowedDeletions }
        defer {
            following.cancel()
            local.cancel()
            timer?.cancel()
        }
        if lends { await vault.beginLending() }
        var nextWhole = ContinuousClock.now
        var hasWarned = false
        for await _ in nudges {
            let now = ContinuousClock.now
            let due = watcher.take(at: now)
            let (items, hasChanged) = news.take()
            guard nextWhole <= now || !due.isEmpty || !items.isEmpty || hasChanged || mustExamineAll else {
                timer?.cancel()
                timer = Self.timer(until: min(nextWhole, watcher.nextDue ?? nextWhole), continuation)
                continue
            }
            try await usingStore { wasWritten in
                let isWhole =
                    nextWhole <= now || due.contains(FolderSchedule.everything) || mustExamineAll || wasWritten
                    || FolderFocus(entries: due).isAboutRules
                // Before the round, so that changes during it are new events.
                if isWhole, watcher.watchAll() { hasWarned = false }
                var done = try await run(within: isWhole ? nil : FolderFocus(entries: due, items: items))
                // Later deletions were not approved.
                allowed = []
                let isWatched = watcher.isWatchingAll
                if !isWatched, !hasWarned {
                    done.warn(.unwatched, root)
                    hasWarned = true
                }
                let period = isWatched ? Self.wholePeriod : interval
                if isWhole { nextWhole = now + period }
                nextWhole = min(nextWhole, .now + period)
                if mustExamineAll, !isWhole { nextWhole = .now }
                try await report(done)
            }
            timer?.cancel()
            timer = Self.timer(until: min(nextWhole, watcher.nextDue ?? nextWhole), continuation)
        }
        if Task.isCancelled { return }
        if let error = await following.value { throw FolderError.vault(error) }
    }
}

extension FolderSync {
    private static func timer(
        until moment: ContinuousClock.Instant, _ continuation: AsyncStream<Void>.Continuation
    ) -> Task<Void, any Error> {
        Task {
            try await Task.sleep(until: moment)
            continuation.yield()
        }
    }
}

/// A store that other processes use between the rounds, and during long ones. Without ``FolderSettings/lendsStore``
/// only this process uses it.
extension FolderSync {
    /// Calls `body`, which needs the store, and then releases the store to other processes, even after an error.
    /// - Parameter body: Receives true when another process has written to the store since the last call.
    private func usingStore(_ body: (_ wasWritten: Bool) async throws -> Void) async throws {
        guard settings.lendsStore else { return try await body(false) }
        do {
            try await body(try await takeStore())
        } catch {
            await leaveStore()
            throw error
        }
        await leaveStore()
    }

    private func takeStore() async throws -> Bool {
        do throws(VaultError) {
            let count = try await vault.reclaimStore()
            hasStore = true
            return noteOutsideWrites(count)
        } catch {
            throw error.isCancellation ? FolderError.cancelled : FolderError.vault(error)
        }
    }

    private func leaveStore() async {
        if !hasStore { return }
        hasStore = false
        await vault.endStoreUse()
    }

    /// Lets the waiting processes use the store.
    /// - Returns: True when another process has written to it since the last call.
    func giveWay() async throws(VaultError) -> Bool {
        hasStore ? noteOutsideWrites(try await vault.giveWay()) : false
    }

    /// Lets waiting processes use the store during a fetch; ``giveWay()`` later reports if they have written.
    func restBeforePiece() async throws(VaultError) {
        if hasStore { _ = try await vault.giveWay() }
    }

    /// Examines the folder. Other processes use the store while its files are read. If one of them has written to it,
    /// possibly by another sync of the folder, it is examined once more.
    func walk(_ tree: FolderTree, into report: inout FolderReport) async throws -> FolderTree.Scan {
        guard hasStore else { return tree.walk(into: &report) }
        await leaveStore()
        let before = report
        let scan = tree.walk(into: &report)
        guard try await takeStore() else { return scan }
        report = before
        return tree.walk(into: &report)
    }

    private func noteOutsideWrites(_ count: Int) -> Bool {
        defer { outsideWrites = count }
        return count != outsideWrites
    }
}

/// The changes in the vault or on the server that wait for a round.
private final class WatchedChanges: Sendable {
    private let news = Mutex<(items: Set<ItemID>, hasChanged: Bool)>(([], false))

    /// Records a change of the vault. One without items is a notice, for example of waiting deletions, which a round
    /// reports.
    func add(_ ids: Set<ItemID>) {
        news.withLock { news in
            news.items.formUnion(ids)
            if ids.isEmpty { news.hasChanged = true }
        }
    }

    func receive() { news.withLock { $0.hasChanged = true } }

    func take() -> (items: Set<ItemID>, hasChanged: Bool) {
        news.withLock { news in
            defer { news = ([], false) }
            return news
        }
    }
}

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
