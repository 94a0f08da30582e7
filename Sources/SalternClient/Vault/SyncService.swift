internal import Foundation

/// Syncs a vault with its server. One round runs at a time.
final class SyncService {
    private let session: VaultSession
    private let store: Store
    private let plan: PlanLimits
    private let attachments: AttachmentService
    /// The items that other devices have deleted and that were not reported yet, after syncs in the background.
    private var removed: Set<ItemID> = []

    init(_ session: VaultSession, _ plan: PlanLimits, _ attachments: AttachmentService) {
        self.session = session
        self.plan = plan
        self.attachments = attachments
        store = session.store
    }

    /// Runs a round, and once a day a sweep.
    @discardableResult
    func sync(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        var report = try await roundInTurn(agreement)
        let (moment, age) = (session.settings.now(), try session.confirmedAge())
        let later = await attachments.sweeper.sweepWhenDue(at: moment, age: age) { () async throws(VaultError) in
            try await round()
        }
        if let later { report.add(later) }
        return report
    }

    private func roundInTurn(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        return try await round(agreement)
    }

    /// Fetches new changes from the server, and sends nothing.
    func fetch(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        return try await runEngine(agreement, sends: false)
    }

    /// Removes chunks that no item names, after a round.
    /// - Returns: The number of removed chunks.
    func sweep() async throws(VaultError) -> Int {
        // The age is that of the server's clock in the reply.
        try await attachments.sweeper.sweep(at: session.settings.now(), age: nil) { () async throws(VaultError) in
            try await round()
        }.count
    }

    // MARK: Rounds

    /// Runs one round. The caller holds ``VaultSession/serverLock``.
    func round(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await session.syncing { () async throws(VaultError) in
            try await session.unconfirmed.settleKeys()
            try await makeRoom()
            var report = try await runEngine(agreement)
            if try await attachments.waiting.send(), try session.stored({ try store.changeCount() }) > 0 {
                report.add(try await runEngine(agreement))
            }
            try session.stored { try store.set(.leaving, nil) }
            await plan.recheck(hasUnsent: report.unsent > 0)
            return report
        }
    }

    /// Before anything is sent: abandoned chunks may use the room.
    private func makeRoom() async throws(VaultError) {
        try attachments.waiting.forgetUnsettled()
        do throws(VaultError) { try await attachments.abandoned.removeAbandoned() } catch .refused {
            // An error does not block other changes.
        }
    }

    /// - Parameter sends: False to fetch only.
    func runEngine(
        _ agreement: DeletionAgreement = .none, sends: Bool = true
    ) async throws(VaultError) -> SyncReport {
        let engine = try session.engine
        let noticesBefore = try session.stored { try store.lastNotice() }
        var report = SyncReport()
        do {
            // Stored changes are not fetched again, so they are reported even after an error.
            defer {
                noteRemoved(report)
                let hasNotices = (try? store.lastNotice()) != noticesBefore
                if !report.changed.isEmpty || hasNotices { session.notifySynced(report.changed) }
            }
            try await engine.round(into: &report, agreement, sends: sends)
            plan.noteReply()
            try removeAged()
            return report
        } catch let error where error is StoreError || error is StoreClosed {
            throw VaultError(ofStore: error)
        } catch let error as APIError {
            throw VaultError(error)
        } catch let error as VaultError {
            throw error
        } catch {
            throw .unavailable(.transport(.cancelled))
        }
    }

    /// Removes expired content from the trash, at the end of a successful round.
    private func removeAged() throws(VaultError) {
        let before = try session.stored { try store.number(.age) }
        guard let age = try session.confirmedAge(), age != before else { return }
        try session.stored { try store.removeAged(at: age) }
    }

    private func noteRemoved(_ report: SyncReport) {
        removed.subtract(report.changed)
        removed.formUnion(report.removed)
    }

    /// Returns the items that other devices have deleted since the last call.
    func takeRemoved() -> Set<ItemID> {
        defer { removed = [] }
        return removed
    }

    // MARK: Following

    /// Syncs now and after each change on the server or here, until the task is cancelled or the session ends.
    func keepInSync() async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let former = session.opened?.token
            do throws(VaultError) {
                try await follow { failures = 0 }
            } catch .unavailable(let error) where !error.isAboutTrust || Task.isCancelled {
                if Task.isCancelled { return }
                failures += 1
                let wait = session.settings.retries.wait(
                    after: failures, asked: error.retryAfter, chance: .random(in: 0...1))
                session.note(.failed(.unavailable(error), next: Date() + wait / .seconds(1)))
                try? await Task.sleep(for: wait)
            } catch {
                // A new session has replaced the one that has ended.
                if case .sessionEnded = error, let token = session.opened?.token, token != former { continue }
                session.note(.failed(error, next: nil))
                throw error
            }
        }
    }

    /// Waits until the vault is opened again, by a password or by a new session.
    /// - Parameter seen: The number of ``VaultSession/openings`` so far.
    /// - Returns: False when the vault is signed out or the task is cancelled.
    func waitForOpening(after seen: Int) async -> Bool {
        for await openings in session.observers.openings.add(keeping: 1, beginningWith: session.openings)
        where openings != seen {
            return true
        }
        return false
    }

    /// Syncs at each edit and at each stream event with new changes. The stream's first event arrives immediately, so
    /// no change between a sync and the opening of the stream is missed. Changes by the sync itself do not count.
    private func follow(onSuccess: () -> Void) async throws(VaultError) {
        let token = try session.open.token
        let api = session.api
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let end = FollowingEnd()
        let edits = session.observers.edits.add()
        let news = FollowedChanges()
        try await sync()
        onSuccess()
        await withTaskGroup { group in
            group.addTask {
                let error = await Self.events(api, token) {
                    news.add($0)
                    continuation.yield()
                }
                end.set(VaultError(error))
                continuation.finish()
            }
            group.addTask {
                for await _ in edits {
                    news.add(nil)
                    continuation.yield()
                }
            }
            for await _ in nudges {
                do throws(VaultError) {
                    if try isNews(news.take()) { try await sync() }
                } catch {
                    end.set(error)
                    break
                }
            }
            group.cancelAll()
        }
        if Task.isCancelled { return }
        throw end.error
    }

    private func isNews(_ reports: [Int64?]) throws(VaultError) -> Bool {
        let engine = try session.engine
        // Each event is recorded.
        return reports.filter { report in report.map { engine.horizon.isNews($0) } ?? true }.isEmpty == false
    }

    /// Reports possible changes on the server, until the task is cancelled or the session ends. It does not use the
    /// store. While the server is unreachable, attempts are repeated after waits that double.
    /// - Throws: The errors of ``Vault/keepInSync()``.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let hasChanged = Locked(false)
            let error = VaultError(
                await Self.events(session.api, try session.open.token) { _ in
                    hasChanged.withLock { $0 = true }
                    onChange()
                })
            if Task.isCancelled { return }
            guard case .unavailable(let cause) = error, !cause.isAboutTrust else { throw error }
            failures = hasChanged.withLock(\.self) ? 1 : failures + 1
            let wait = session.settings.retries.wait(
                after: failures, asked: cause.retryAfter, chance: .random(in: 0...1))
            try? await Task.sleep(for: wait)
        }
    }

    /// Reads the events of one stream.
    /// - Parameter onChange: Receives the account's revision; nil for an event without one.
    /// - Returns: The reason for which the stream has ended.
    private static func events(_ api: SalternAPI, _ token: Token, _ onChange: (Int64?) -> Void) async -> APIError {
        let events: ServerSentEvents
        do throws(APIError) { events = try await api.streamChanges(token) } catch { return error }
        var iterator = events.makeAsyncIterator()
        var pace = EventPace(at: .now)
        do throws(TransportError) {
            while let event = try await iterator.next() {
                guard event.name == "change" else { continue }
                onChange(event.id.flatMap { Int64($0) })
                try? await Task.sleep(for: pace.wait(at: .now))
            }
            return .transport(.connectionLost)
        } catch {
            return .transport(error)
        }
    }
}

/// The reason for which following has ended.
private final class FollowingEnd: Sendable {
    private let reason = Locked(VaultError.unavailable(.transport(.connectionLost)))

    var error: VaultError { reason.withLock { $0 } }

    func set(_ error: VaultError) { reason.withLock { $0 = error } }
}

/// The events since the start of the last sync.
private final class FollowedChanges: Sendable {
    /// The last revision that the server has reported, and true after an edit or a report without a revision.
    private let reports = Locked<(revision: Int64?, hasOthers: Bool)>((nil, false))

    func add(_ revision: Int64?) {
        reports.withLock { if let revision { $0.revision = revision } else { $0.hasOthers = true } }
    }

    func take() -> [Int64?] {
        reports.withLock { reports in
            defer { reports = (nil, false) }
            return (reports.revision.map { [$0] } ?? []) + (reports.hasOthers ? [nil] : [])
        }
    }
}

/// Limits the effects of a stream's events, against a hostile server with continuous events.
///
/// A number of events has its effect immediately. Each further one waits.
struct EventPace {
    typealias Instant = ContinuousClock.Instant

    /// The number of events with an immediate effect after a quiet period.
    static let burst = 20
    /// The interval at which one more event has its effect.
    static let interval = Duration.milliseconds(250)

    /// The time at which the whole burst is available again.
    private var full: Instant

    init(at now: Instant) { full = now }

    /// Counts an event.
    /// - Returns: The wait before the next one is read.
    mutating func wait(at now: Instant) -> Duration {
        full = max(full, now) + Self.interval
        return max(.zero, full - now - Self.interval * Self.burst)
    }
}
