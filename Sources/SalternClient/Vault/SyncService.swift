internal import Foundation

/// Syncs a vault with its server: the account's items, and those of its shared vaults. One round runs at a time.
final class SyncService {
    private let session: VaultSession
    private let store: Store
    private let owners: ItemOwners

    init(_ session: VaultSession, _ owners: ItemOwners) {
        self.session = session
        self.owners = owners
        store = session.store
    }

    private var account: ItemParts { owners.account }

    /// Runs a round of each owner, and once a day a sweep of each. An error of one shared vault is in the report.
    /// - Parameters:
    ///   - owner: The owner of the items with approved deletions.
    ///   - concerned: The owners with changes; nil for all.
    /// - Throws: An error of the account's items, or one that concerns all vaults.
    @discardableResult
    func sync(
        _ agreement: DeletionAgreement = .none, of owner: ItemOwner = .account, only concerned: Set<ItemOwner>? = nil
    ) async throws(VaultError) -> SyncReport {
        var report = SyncReport()
        var room = ChunkSweeper.sweepLimit
        if concerned?.contains(.account) ?? true {
            report = try await roundInTurn(owner == .account ? agreement : .none)
            let later = try await sweepWhenDue(account, &room) { () async throws(VaultError) in try await round() }
            if let later { report.add(later) }
        }
        // Vaults change neither by edits of the account's items, nor without a change of its records.
        if concerned == [.account], report.changed.isEmpty { return report }
        guard let memberships = session.memberships else { return report }
        let refresh = try await refreshed(memberships)
        var present: [SharedVaultID] = []
        for id in refresh.present {
            // A key of the vault can arrive with the account's items.
            if let concerned, !concerned.contains(.vault(id)) {
                guard try owners.parts(of: .vault(id)).isJudgingDue() else { continue }
            }
            present.append(id)
        }
        report.vaultFailures = refresh.failures
        try retireEnded(refresh, &report)
        if present.isEmpty { return report }
        report = try await session.syncing { () async throws(VaultError) in
            var synced = try await sync(present, agreement, of: owner, after: report)
            for id in present { await sweepWhenDue(id, &room, into: &synced) }
            return synced
        }
        if let failure = report.firstVaultFailure { session.note(.failed(failure, next: nil)) }
        return report
    }

    /// Fetches what has changed in all logs. An error is that of each vault, so that the account's report is returned.
    private func refreshed(_ memberships: any Memberships) async throws(VaultError) -> VaultRefresh {
        do throws(VaultError) { return try await memberships.refresh() } catch {
            let vaults = try session.stored { try store.vaults() }
            if error.isOfAllOwners || vaults.isEmpty { throw error }
            return VaultRefresh(failures: Dictionary(vaults.map { ($0, error) }) { first, _ in first })
        }
    }

    /// Syncs the account's items only.
    func syncAccount() async throws(VaultError) -> SyncReport { try await roundInTurn(.none) }

    /// Withdraws the unsent edits of shared vaults whose membership has ended.
    private func retireEnded(_ refresh: VaultRefresh, _ report: inout SyncReport) throws(VaultError) {
        let vaults = try session.stored { try store.vaults() }
        for id in vaults where !refresh.present.contains(id) && refresh.failures[id] == nil {
            let parts = try owners.parts(of: .vault(id))
            guard try session.stored({ try parts.scope.store.changeCount() }) > 0, let sealer = try? parts.scope.sealer,
                !sealer.canWrite, !sealer.isStopped
            else { continue }
            report.vaults[id] = try parts.retireChanges()
        }
    }

    /// Runs a round of each shared vault.
    private func sync(
        _ vaults: [SharedVaultID], _ agreement: DeletionAgreement, of owner: ItemOwner, after first: SyncReport
    ) async throws(VaultError) -> SyncReport {
        var report = first
        var unreachable: VaultError?
        for id in vaults {
            var all = session.memberships?.takeReport(of: id) ?? SyncReport()
            do throws(VaultError) {
                if let unreachable { throw unreachable }
                all.add(try await round(of: id, owner == .vault(id) ? agreement : .none))
                report.vaults[id] = all
                try await session.memberships?.afterRound(id)
            } catch {
                if error.isOfAllOwners { throw error }
                report.vaultFailures[id] = error
                if error.isUnreachable { unreachable = error }
            }
        }
        return report
    }

    private func roundInTurn(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        return try await round(agreement)
    }

    /// Fetches new changes from the server, and sends nothing.
    /// - Parameter learns: False to judge by the known log of a shared vault.
    func fetch(
        _ agreement: DeletionAgreement, of owner: ItemOwner = .account, learns: Bool = true
    ) async throws(VaultError) -> SyncReport {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        return try await owners.parts(of: owner).runEngine(agreement, sends: false, learns: learns)
    }

    private func sweepWhenDue(
        _ parts: ItemParts, _ room: inout Int, _ round: () async throws(VaultError) -> SyncReport
    ) async throws(VaultError) -> SyncReport? {
        let (moment, age) = (session.settings.now(), try session.confirmedAge())
        return await parts.attachments.sweeper.sweepWhenDue(at: moment, age: age, room: &room, after: round)
    }

    /// Sweeps a shared vault that was synced. A failure concerns neither the sync nor other vaults.
    private func sweepWhenDue(_ id: SharedVaultID, _ room: inout Int, into report: inout SyncReport) async {
        guard let synced = report.vaults[id], report.vaultFailures[id] == nil, !synced.isHeld,
            let parts = try? owners.parts(of: .vault(id))
        else { return }
        let later = try? await sweepWhenDue(parts, &room) { () async throws(VaultError) in
            // Another task can have removed the vault from this device.
            guard try owners.parts(of: .vault(id)) === parts else { throw .shared(.unknownVault) }
            return try await parts.round()
        }
        if let later { report.vaults[id]?.add(later) }
    }

    /// Removes chunks of the account that no item names, after a round.
    /// - Returns: The number of removed chunks.
    func sweep() async throws(VaultError) -> Int {
        var room = Int.max
        // The age is that of the server's clock in the reply.
        return try await account.attachments.sweeper.sweep(at: session.settings.now(), age: nil, room: &room) {
            () async throws(VaultError) in
            try await round()
        }.count
    }

    // MARK: Rounds

    /// Runs one round of the account. The caller holds ``VaultSession/serverLock``.
    func round(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await session.syncing { () async throws(VaultError) in
            try await session.unconfirmed.settleKeys()
            let report = try await account.round(agreement)
            try session.stored { try store.set(.leaving, nil) }
            await account.plan.recheck(hasUnsent: report.unsent > 0)
            return report
        }
    }

    /// Runs one round of a shared vault.
    private func round(
        of id: SharedVaultID, _ agreement: DeletionAgreement
    ) async throws(VaultError) -> SyncReport {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        let parts = try owners.parts(of: .vault(id))
        do throws(VaultError) {
            let report = try await parts.round(agreement)
            await parts.plan.recheck(hasUnsent: report.unsent > 0)
            return report
        } catch .refused(let problem) where problem.code == .notFound {
            return try end(id, parts)
        } catch .shared(.unknownVault) {
            return try end(id, parts)
        }
    }

    /// Ends the syncing of a vault that the server no longer has for this account. Its items stay readable until a
    /// person decides.
    private func end(_ id: SharedVaultID, _ parts: ItemParts) throws(VaultError) -> SyncReport {
        try session.memberships?.noteEnd(of: id)
        // The membership can return: the edits wait.
        if try parts.scope.sealer.isStopped { return SyncReport() }
        return try parts.retireChanges()
    }

    func runEngine(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await account.runEngine(agreement)
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
        var report = try await sync()
        onSuccess()
        await withTaskGroup { group in
            let repeats = VaultRepeats()
            group.addTask {
                let error = await Self.events(api, token) { owner, revision in
                    news.add(owner, revision)
                    continuation.yield()
                }
                end.set(VaultError(error))
                continuation.finish()
            }
            group.addTask {
                for await owner in edits {
                    news.add(owner, nil)
                    continuation.yield()
                }
            }
            var events = nudges.makeAsyncIterator()
            repeat {
                // A vault that has failed is synced again later. The others and the stream continue.
                for (id, wait) in repeats.begin(after: report, session.settings.retries) {
                    group.addTask {
                        try? await Task.sleep(for: wait)
                        repeats.end(id)
                        news.add(.vault(id), nil)
                        continuation.yield()
                    }
                }
                report = SyncReport()
                guard await events.next() != nil else { break }
                do throws(VaultError) {
                    let concerned = try concerned(news.take())
                    if !concerned.isEmpty { report = try await sync(only: concerned) }
                } catch {
                    end.set(error)
                    break
                }
            } while true
            group.cancelAll()
        }
        if Task.isCancelled { return }
        throw end.error
    }

    /// Returns the owners with changes, here or on the server.
    private func concerned(_ news: [ItemOwner: FollowedChanges.News]) throws(VaultError) -> Set<ItemOwner> {
        _ = try session.open
        var concerned: Set<ItemOwner> = []
        for (owner, news) in news {
            // Each event is recorded.
            var isNews = news.hasOthers
            if let revision = news.revision, try self.isNews(revision, of: owner) { isNews = true }
            if isNews { concerned.insert(owner) }
        }
        return concerned
    }

    private func isNews(_ revision: Int64, of owner: ItemOwner) throws(VaultError) -> Bool {
        if owner == .account { return try account.isNews(revision) }
        guard session.memberships != nil else { return false }
        // The membership in a new vault can be on its way to this device.
        return (try? owners.parts(of: owner).isNews(revision)) ?? true
    }

    /// Reports possible changes on the server, until the task is cancelled or the session ends. It does not use the
    /// store. While the server is unreachable, attempts are repeated after waits that double.
    /// - Throws: The errors of ``Vault/keepInSync()``.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let hasChanged = Locked(false)
            let error = VaultError(
                await Self.events(session.api, try session.open.token) { _, _ in
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
    /// - Parameter onChange: Receives an owner and the revision of its items; nil for an event without one.
    /// - Returns: The reason for which the stream has ended.
    private static func events(
        _ api: SalternAPI, _ token: Token, _ onChange: (ItemOwner, Int64?) -> Void
    ) async -> APIError {
        let events: ServerSentEvents
        do throws(APIError) { events = try await api.streamChanges(token) } catch { return error }
        var iterator = events.makeAsyncIterator()
        var pace = EventPace(at: .now)
        do throws(TransportError) {
            while let event = try await iterator.next() {
                switch event.name {
                case "change": onChange(.account, event.id.flatMap { Int64($0) })
                case "vault":
                    guard let position = try? SalternAPI.decode(VaultPosition.self, Array(event.data.utf8)) else {
                        continue
                    }
                    onChange(.vault(position.id), position.revision)
                default: continue
                }
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
    struct News: Sendable {
        /// The last revision that the server has reported.
        var revision: Int64?
        /// True after an edit or a report without a revision.
        var hasOthers = false
    }

    private let news = Locked<[ItemOwner: News]>([:])

    func add(_ owner: ItemOwner, _ revision: Int64?) {
        news.withLock { news in
            if let revision {
                news[owner, default: News()].revision = revision
            } else {
                news[owner, default: News()].hasOthers = true
            }
        }
    }

    func take() -> [ItemOwner: News] {
        news.withLock { news in
            defer { news = [:] }
            return news
        }
    }
}

/// The event of a shared vault.
private struct VaultPosition: Decodable {
    let id: SharedVaultID
    /// Nil when the membership has ended.
    let revision: Int64?
}

extension VaultError {
    /// True when the items of other owners cannot be synced either.
    fileprivate var isOfAllOwners: Bool {
        switch self {
        case .sessionEnded, .locked, .store: true
        default: isCancellation || isAboutTrust
        }
    }

    /// True when no request has reached the server.
    fileprivate var isUnreachable: Bool {
        if case .unavailable(.transport) = self { true } else { false }
    }
}

extension SyncReport {
    /// The failure of the first vault, in the order of ids.
    fileprivate var firstVaultFailure: VaultError? { vaultFailures.min { $0.key < $1.key }?.value }
}

/// Decides when vaults that have failed are synced again. Each has its own wait.
final class VaultRepeats: Sendable {
    private struct State {
        /// The number of failures since the last success.
        var failures: [SharedVaultID: Int] = [:]
        var waiting: Set<SharedVaultID> = []
    }

    private let state = Locked(State())

    /// Begins the waits of vaults that have failed, except those that already wait.
    func begin(after report: SyncReport, _ retries: Retries) -> [SharedVaultID: Duration] {
        state.withLock { state in
            for id in report.vaults.keys where report.vaultFailures[id] == nil { state.failures[id] = nil }
            var waits: [SharedVaultID: Duration] = [:]
            for (id, failure) in report.vaultFailures {
                let count = (state.failures[id] ?? 0) + 1
                state.failures[id] = count
                guard state.waiting.insert(id).inserted else { continue }
                waits[id] = retries.wait(after: count, asked: failure.repeatAfter, chance: .random(in: 0...1))
            }
            return waits
        }
    }

    func end(_ id: SharedVaultID) { state.withLock { _ = $0.waiting.remove(id) } }
}

extension VaultError {
    /// The wait until a failed vault is synced again; nil for that of a lost connection.
    fileprivate var repeatAfter: Duration? {
        if case .unavailable(let error) = self { error.retryAfter } else { .seconds(600) }
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
