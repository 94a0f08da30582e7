internal import Foundation

/// Syncs the store with the server: fetches, decides, sends.
///
/// It is not `Sendable`: it runs on the actor of its owner. Between two awaits each function runs one transaction.
/// Users can edit during a sync, and the next round continues after a crash at any point.
final class SyncEngine {
    let context: SyncContext
    let server: any SyncServer
    let limits: SyncLimits
    /// Merges two versions; nil keeps both.
    let merge: MergeRule?
    /// Fetches later keys and uses them: a keyring, or the log of a shared vault.
    let learn: () async throws -> Void
    private let onProgress: (SyncReport) -> Void
    private let horizon: SyncHorizon
    private let sender: ChangeSender
    /// The number of the log's head at which this device first had the version that is being applied, while it could
    /// not judge it; nil between two versions.
    var heldSince: Int64?
    /// True while the log of a shared vault can have later entries, which are fetched next.
    private(set) var isProvisional = false

    /// - Parameters:
    ///   - learn: Fetches later keys and uses them: a keyring, or the log of a shared vault.
    ///   - merge: Merges two versions; nil keeps both.
    ///   - onProgress: Receives the progress of a round.
    init(
        _ context: SyncContext, server: any SyncServer, limits: SyncLimits, learn: @escaping () async throws -> Void,
        merge: MergeRule?, onProgress: @escaping (SyncReport) -> Void
    ) {
        self.context = context
        self.server = server
        self.limits = limits
        self.learn = learn
        self.merge = merge
        self.onProgress = onProgress
        horizon = SyncHorizon()
        sender = ChangeSender(context, server, limits, horizon, onProgress: onProgress)
    }

    var sealer: any ItemSealing { context.sealer }
    var store: Store { context.store }
    var newID: () -> ItemID { context.newID }
    var moment: Date { context.moment }

    /// Runs one round: fetches, then sends, until both sides have no new changes. Waiting deletions do not block other
    /// changes.
    /// - Parameters:
    ///   - report: The changes on this device, including those before an error.
    ///   - agreement: The deletions that the user has approved, in any number.
    ///   - sends: False to fetch only.
    ///   - learns: False to judge by the known log of a shared vault: no entry is taken during the round.
    func round(
        into report: inout SyncReport, _ agreement: DeletionAgreement = .none, sends: Bool = true, learns: Bool = true
    ) async throws {
        isProvisional = !learns
        defer { isProvisional = false }
        var guardian = DeletionGuard(store, limits, agreement, at: moment)
        var progress = PullProgress(limits)
        var disputed: [Dispute] = []
        var refused: Set<Int64> = []
        var fruitless = 0
        for _ in 0..<limits.rounds {
            if sends { try sender.retireChangesOfReader(into: &report) }
            try await judgeAgain(&guardian, into: &report)
            try await pull(&guardian, agreement, &progress, learns: learns, into: &report)
            if !sends { return }
            if sealer.isStopped { return try sender.countUnsent(into: &report) }
            if !sealer.canWrite { return try sender.retireChangesOfReader(into: &report) }
            // After a restore of the server, no change is sent before all of its items were compared.
            if report.isHeld, try store.number(.comparing) != nil { return }
            try await settle(disputed, into: &report)
            if fruitless == 0 { try await settleSetAside(into: &report) }
            if sealer.isStopped { return try sender.countUnsent(into: &report) }
            try sendFormerVersions()
            do {
                disputed = try await sender.push(except: &refused, into: &report)
                if disputed.isEmpty { return }
            } catch APIError.problem(let problem) where problem.isAboutMembership {
                // An entry of the log has changed the keys or the roles since. The next push seals the changes again.
                disputed = []
                let before = sealer.stamp
                // An entry that cuts a writer off judges only the items that come after it.
                isProvisional = true
                if sealer.isOfVault { try await pull(&guardian, agreement, &progress, learns: false, into: &report) }
                isProvisional = false
                try await learn()
                fruitless = sealer.stamp == before ? fruitless + 1 : 0
                if fruitless > 1 { break }
            }
            try Task.checkCancellation()
        }
        try sender.countUnsent(into: &report)
    }

    // MARK: Fetching

    private func pull(
        _ guardian: inout DeletionGuard, _ agreement: DeletionAgreement, _ progress: inout PullProgress, learns: Bool,
        into report: inout SyncReport
    ) async throws {
        var hasAsked = false
        // Versions under keys, or of entries, that the known log does not have.
        var lacking: [ItemState] = []
        var hasMore = false
        var beginnings = 0
        report.isHeld = false
        progress.begin()
        var fetching = horizon.begin()
        while true {
            let cursor = try store.text(.cursor)
            // A device that lists everything again already stores items, and needs the tombstones.
            let reportsDeletions = try store.number(.listing) ?? 0 > 0
            let page: ChangePage
            do {
                page = try await self.page(
                    since: cursor, reportsDeletions: reportsDeletions, isLong: cursor == nil || hasMore)
            } catch APIError.problem(let problem)
                where problem.isAboutCursor && cursor != nil && beginnings < limits.beginnings
            {
                beginnings += 1
                try beginListing(base: nil)
                progress.begin()
                continue
            }
            hasMore = page.more
            if try hasNewBase(page) {
                // A server whose revision base changes with every reply is not usable.
                guard beginnings < limits.beginnings else { throw APIError.unexpectedReply }
                beginnings += 1
                try beginListing(base: page.revisionBase)
                progress.begin()
                if cursor != nil { continue }
            }
            if sealer.isOfVault {
                // The known log judges all pages before it gets later entries: an entry can cut a writer off, and then
                // only edits count that were accepted before.
                if learns, !hasAsked {
                    lacking += page.changes.filter(namesUnknown).prefix(Self.singleFetches - lacking.count)
                }
            } else if !hasAsked, try hasUnknownKey(page) || store.hasUnread() {
                // Fetches the keys before any decision: another device may have written the unreadable items.
                hasAsked = true
                try await learn()
                // Its keys may open items of earlier pages.
                if try store.text(.cursor) != cursor {
                    progress.begin()
                    continue
                }
            }
            try progress.take(page, after: cursor) { try store.openedCount() }
            let before = report
            do {
                try applyPage(page, &guardian, into: &report)
            } catch let broken as BrokenConfirmations {
                report = before
                try revoke(broken.confirmations)
                throw APIError.unexpectedReply
            }
            for change in page.changes { fetching.take(change.revision) }
            report.fetched += page.changes.count
            onProgress(report)
            if !page.more {
                horizon.end(fetching)
                try settleHeld(agreement, into: &report)
                guard !lacking.isEmpty, !hasAsked else { return }
                hasAsked = true
                try await learn()
                try await judgeAgain(&guardian, into: &report)
                try settleHeld(agreement, into: &report)
                for version in lacking { try noteUnknown(version) }
                if try store.text(.cursor) != nil { return }
                progress.begin()
                fetching = horizon.begin()
            }
            try Task.checkCancellation()
        }
    }

    /// Applies a page.
    /// - Throws: ``BrokenConfirmations``.
    private func applyPage(
        _ page: ChangePage, _ guardian: inout DeletionGuard, into report: inout SyncReport
    ) throws {
        try store.transaction {
            try checkConfirmations(against: page.changes)
            for change in page.changes { try forgetFormerVersion(before: change) }
            let held = try guardian.held(among: page.changes)
            let listing = try store.number(.listing) ?? 0
            for change in page.changes where try !isChunkNoted(change) {
                if held.contains(change.id) {
                    try store.hold(change.id, change.revision, listing: listing)
                } else {
                    try apply(change, into: &report)
                }
            }
            try store.set(.cursor, Array(page.cursor.utf8))
            if !page.more {
                try endListing(&guardian, into: &report)
                try endConfirmations()
            }
        }
    }

    /// Carries out waiting deletions that the user has approved, and records if others wait.
    private func settleHeld(_ agreement: DeletionAgreement, into report: inout SyncReport) throws {
        try store.transaction {
            try store.forgetSettledHolds()
            var isHeld = false
            for deletion in try store.heldDeletions() {
                // A later list or entry can let the version count, and a user can have changed it.
                if deletion.isRefusal, try !isRefused(deletion.id) {
                    try store.forgetHold(deletion.id)
                    continue
                }
                guard agreement.includes(deletion.collection) else {
                    isHeld = true
                    continue
                }
                if deletion.isRefusal {
                    try withdraw(deletion.id, into: &report)
                } else {
                    try storeTombstone(deletion.id, deletion.revision, into: &report)
                }
                try store.forgetHold(deletion.id)
            }
            switch agreement {
            case .none: break
            case .all: try store.forgetCollectionDeletions()
            case .collections(let names):
                for name in names { try store.forgetDeletions(.collection(name)) }
            }
            report.isHeld = isHeld
            if isHeld {
                try store.set(.held, 1)
                try store.note(.massDeletion)
            } else if try store.number(.held) != nil {
                try store.set(.held, nil)
                try store.forgetNotices(.massDeletion)
            }
        }
    }

    private func hasNewBase(_ page: ChangePage) throws -> Bool {
        guard let base = page.revisionBase else { return false }
        let known = try store.number(.revisionBase)
        if known == nil { try store.set(.revisionBase, base) }
        return known.map { $0 != base } ?? false
    }

    /// Starts a complete listing. It is no statement about items that it does not contain.
    private func beginListing(base: Int64?) throws {
        try store.transaction {
            try store.beginListing()
            guard let base else { return }
            // Acknowledged changes may be lost.
            try store.forgetConfirmations()
            try store.set(.revisionBase, base)
            try store.set(.comparing, 1)
            try store.note(.timeWentBack)
        }
    }

    private func endListing(_ guardian: inout DeletionGuard, into report: inout SyncReport) throws {
        let listing = try store.number(.listing) ?? 0
        let isComparing = try store.number(.comparing) != nil
        let pointless = isComparing ? try pointlessCopies(listing) : []
        let unlisted = try store.unlisted(listing)
        let held = try heldRefusals(among: unlisted, &guardian)
        for item in unlisted {
            if held.contains(item.id) {
                try store.hold(item.id, item.revision, listing: listing, isRefusal: true)
                continue
            }
            try store.removeItem(item.id)
            // While no manager has decided about an accepted version, it waits as a change.
            if sealer.isOfVault, item.isSealed || hasGivenWay(item) {
                // Nothing that no rule has accepted becomes a change of this device.
                if !item.isSealed {
                    try store.trash(item, at: moment)
                    try store.storeTombstone(item.id, item.revision, at: moment)
                    try store.note(.refused, item.id)
                }
                report.changed.insert(item.id)
            } else if pointless.contains(item.id) {
                // No user has deleted it. In the trash it would not be kept when it is lost again.
                report.changed.insert(item.id)
            } else if isComparing, try store.change(item.id) == nil, let copy = try keptCopy(of: item.content, item.id)
            {
                try store.note(.conflict, item.id, other: copy)
                report.changed.insert(item.id)
            } else if var change = try store.change(item.id) {
                if change.content == nil {
                    try store.forgetChange(item.id)
                } else {
                    change.base = nil
                    try store.write(change)
                }
            } else {
                try store.record(item.id, content: item.content, edit: item.edit)
                try store.note(.keptUnlisted, item.id)
            }
        }
        for id in pointless where try store.item(id) == nil && store.change(id) != nil {
            try store.forgetChange(id)
            report.changed.insert(id)
        }
        try store.forgetUnlistedChunks(listing)
        try store.forgetUnlistedSetAside()
        if try isComparing || store.number(.copies) != nil {
            try forgetKeptElsewhere(into: &report)
            try store.set(.copies, nil)
        }
        try store.set(.comparing, nil)
    }

    /// Decides about changes that fetching has not resolved, because the server does not list older changes again.
    /// Otherwise one such change would block all others permanently.
    private func settle(_ disputes: [Dispute], into report: inout SyncReport) async throws {
        for dispute in disputes {
            let id = dispute.change.id
            guard try store.change(id)?.base == dispute.change.base, try store.change(id) != nil else { continue }
            let state = try await Result.of({ () throws(APIError) in try await server.item(id) }).get()
            try store.transaction {
                if let state {
                    try apply(state, into: &report)
                } else {
                    try storeTombstone(id, dispute.revision ?? Revision(0), into: &report)
                }
            }
        }
    }

    // MARK: Other calls

    /// Withdraws the unsent changes. Their content stays on this device, in the trash or among the replaced versions.
    func retireChanges(into report: inout SyncReport) throws { try sender.retireChanges(into: &report) }

    /// Returns true when an event of the server has new changes, which then need a fetch.
    func isNews(_ revision: Int64) -> Bool { horizon.isNews(revision) }
}

extension Problem {
    /// True when the server rejects the cursor: it is too old, or of another server.
    fileprivate var isAboutCursor: Bool { code == .cursorExpired || code == .malformedCursor }
}

extension Result where Failure == APIError {
    /// Returns the result of an API call.
    static func of(_ call: () async throws(APIError) -> Success) async -> Self {
        do throws(APIError) { return .success(try await call()) } catch { return .failure(error) }
    }
}

/// The items of one owner on this device, for all parts of a sync.
struct SyncContext {
    let store: Store
    let newID: () -> ItemID
    private let sealing: () -> any ItemSealing
    private let now: () -> Date

    /// - Parameter sealing: Returns the present keys of the owner. Another call can replace them between two
    ///   transactions.
    init(
        _ store: Store, sealing: @escaping () -> any ItemSealing, newID: @escaping () -> ItemID = { .random() },
        now: @escaping () -> Date = Date.init
    ) {
        self.store = store
        self.newID = newID
        self.sealing = sealing
        self.now = now
    }

    var sealer: any ItemSealing { sealing() }

    var moment: Date { now() }
}

/// The limits of a round.
struct SyncLimits: Sendable {
    var page = 200
    var batch = 200
    var batchBytes = 8 << 20
    /// The smallest size of a batch, in bytes, to which failing batches are divided.
    var smallestBatchBytes = 64 << 10
    /// The maximum number of times in a row that a push makes its batches smaller.
    var slowdowns = 5
    var rounds = 16
    /// The maximum number of complete listings that one round starts.
    var beginnings = 4
    /// The maximum number of changes of one round, beside one for each opened item of this device.
    var changes = 4_000_000
    /// More deletions than this, or than a third of at least ten items, need the user's approval.
    var deletions = 25
}

/// The result of a sync.
public struct SyncReport: Sendable {
    /// The items that were written or removed on this device.
    public internal(set) var changed: Set<ItemID> = []
    /// Those of them that were deleted by other devices: ``Vault/restore(_:)`` restores them.
    public internal(set) var removed: Set<ItemID> = []
    /// The number of changes of other devices that were fetched.
    public internal(set) var fetched = 0
    /// The number of changes of this device that were sent and confirmed.
    public internal(set) var sent = 0
    /// The number of changes that the server rejects at present; see ``Vault/notices()``.
    public internal(set) var unsent = 0
    /// True when deletions wait for the user's approval: see ``Vault/heldDeletions()``.
    public internal(set) var isHeld = false
    /// The reports of the shared vaults.
    public internal(set) var vaults: [SharedVaultID: SyncReport] = [:]
    /// The shared vaults that were not synced, with the reasons. Everything else was synced.
    public internal(set) var vaultFailures: [SharedVaultID: VaultError] = [:]

    /// Adds the report of a later round.
    mutating func add(_ later: SyncReport) {
        removed.subtract(later.changed)
        removed.formUnion(later.removed)
        changed.formUnion(later.changed)
        fetched += later.fetched
        sent += later.sent
        unsent = later.unsent
        isHeld = later.isHeld
        for id in later.vaults.keys { vaultFailures[id] = nil }
        vaultFailures.merge(later.vaultFailures) { _, later in later }
        vaults.merge(later.vaults) { earlier, later in
            var sum = earlier
            sum.add(later)
            return sum
        }
    }
}

/// Ends a round against a hostile server whose pages never end. Revisions rise within a listing, so no change is
/// repeated.
///
/// A server can generate any number of new ones, in tombstones, unreadable items and headers of chunks. It cannot
/// generate items that can be opened. The limit is therefore a fixed number of changes and one for each such item, so
/// no account is too large. The next round continues from the cursor.
struct PullProgress {
    private let limits: SyncLimits
    private var last: Revision?
    private var count = 0
    /// The limit of changes, according to the last count of items.
    private var room: Int

    init(_ limits: SyncLimits) {
        self.limits = limits
        room = limits.changes
    }

    /// Starts a complete listing, or one after the cursor.
    mutating func begin() { last = nil }

    /// Counts a page.
    /// - Parameter openedCount: Returns the number of items on this device that were opened.
    /// - Throws: ``APIError/unexpectedReply``.
    mutating func take(_ page: ChangePage, after cursor: String?, openedCount: () throws -> Int) throws {
        if page.more, page.cursor == cursor { throw APIError.unexpectedReply }
        for change in page.changes {
            if let last, change.revision <= last { throw APIError.unexpectedReply }
            last = change.revision
        }
        // An empty page represents thousands of tombstones that the server has skipped.
        count += page.changes.isEmpty ? limits.page : page.changes.count
        guard page.more, count > room else { return }
        room = limits.changes + (try openedCount())
        guard count <= room else { throw APIError.unexpectedReply }
    }
}

/// The revision of the account up to which a device has everything, as far as it can be inferred.
///
/// The server reports the account's revision after each change, also after a change by this device. An event with the
/// horizon's revision has no new changes. Every other event can have some, even with a lower revision: the server may
/// have been restored from a backup.
final class SyncHorizon {
    /// Nil until a revision is known.
    private(set) var revision: Int64?
    /// The last revision that the server has reported and that no fetch has been started for.
    private var reported: Int64?

    /// The state at the beginning of a fetch.
    struct Beginning {
        fileprivate let reported: Int64?
        fileprivate(set) var last: Int64?

        /// Records a fetched change.
        mutating func take(_ revision: Revision) { last = max(last ?? 0, revision.number) }
    }

    /// Returns true when an event has new changes, which then need a fetch.
    func isNews(_ revision: Int64) -> Bool {
        if revision == self.revision { return false }
        reported = revision
        return true
    }

    /// Starts a fetch. Events that arrive during it belong to the next one.
    func begin() -> Beginning {
        defer { reported = nil }
        return Beginning(reported: reported)
    }

    /// Ends a fetch at the end of the listing.
    func end(_ fetching: Beginning) {
        guard let last = [fetching.reported, fetching.last].compactMap(\.self).max() else { return }
        let wentBack = fetching.reported.map { $0 < revision ?? 0 } ?? false
        revision = wentBack ? last : max(revision ?? 0, last)
    }

    /// Records a confirmed change of this device. If another device has made a change in between, the horizon stays.
    func confirm(_ revision: Revision) {
        if let known = self.revision, known < .max, revision.number == known + 1 { self.revision = revision.number }
    }
}
