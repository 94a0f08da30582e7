internal import Foundation

/// Brings the store and the server together: fetches, decides, sends.
///
/// Not `Sendable`: it runs on the actor of its owner. Between two awaits each function does one transaction, so a person
/// can go on editing while something is under way, and a crash at any point leaves a state from which the next round goes
/// on.
final class SyncEngine {
    let store: Store
    let server: any SyncServer
    var sealer: Sealer
    /// Makes one version of two; nil keeps both.
    var merge: MergeRule?
    /// Asks for a later keyring, and goes on with it.
    var takeLaterKeyring: (() async throws -> Void)?
    /// Hears how far a round has come.
    var onProgress: (SyncReport) -> Void = { _ in }
    let limits: SyncLimits
    let newID: () -> ItemID
    private let now: () -> Date
    /// Which reports of the server have no news.
    var horizon = SyncHorizon()

    init(
        store: Store, server: any SyncServer, sealer: Sealer, limits: SyncLimits = SyncLimits(),
        newID: @escaping () -> ItemID = { .random() }, now: @escaping () -> Date = Date.init
    ) {
        self.store = store
        self.server = server
        self.sealer = sealer
        self.limits = limits
        self.newID = newID
        self.now = now
    }

    /// One round: what is new there, then what is new here, until both sides have nothing new. Deletions that wait hold back
    /// nothing else.
    /// - Parameters:
    ///   - report: What has changed here; also what was done before an error.
    ///   - agreement: To which deletions a person has agreed, however many this round brings.
    ///   - sends: False where only what is new there is fetched.
    func round(
        into report: inout SyncReport, _ agreement: DeletionAgreement = .none, sends: Bool = true
    ) async throws {
        var guardian = DeletionGuard(store, limits, agreement, at: moment)
        var progress = PullProgress(limits)
        var disputed: [Dispute] = []
        var refused: Set<Int64> = []
        for _ in 0..<limits.rounds {
            try await pull(&guardian, agreement, &progress, into: &report)
            if !sends { return }
            // Nothing is sent before all of what a restored server has was compared.
            if report.isHeld, try store.number(.comparing) != nil { return }
            try await settle(disputed, into: &report)
            disputed = try await push(except: &refused, into: &report)
            if disputed.isEmpty { return }
            try Task.checkCancellation()
        }
    }

    // MARK: Fetching

    private func pull(
        _ guardian: inout DeletionGuard, _ agreement: DeletionAgreement, _ progress: inout PullProgress,
        into report: inout SyncReport
    ) async throws {
        var hasAsked = false
        var beginnings = 0
        report.isHeld = false
        progress.begin()
        var fetching = horizon.begin()
        while true {
            let cursor = try store.text(.cursor)
            // Who lists everything anew holds items, and has to hear which of them are gone.
            let reportsDeletions = try store.number(.listing) ?? 0 > 0
            let page: ChangePage
            switch await self.page(since: cursor, reportsDeletions: reportsDeletions) {
            case .success(let fetched): page = fetched
            case .failure(.problem(let problem))
            where problem.isAboutCursor && cursor != nil && beginnings < limits.beginnings:
                beginnings += 1
                try beginListing(base: nil)
                progress.begin()
                continue
            case .failure(let error): throw error
            }
            if try hasNewBase(page) {
                // A server whose history is always another one is none to follow.
                guard beginnings < limits.beginnings else { throw APIError.unexpectedReply }
                beginnings += 1
                try beginListing(base: page.revisionBase)
                progress.begin()
                if cursor != nil { continue }
            }
            if !hasAsked, try hasUnknownKey(page) || store.hasUnread() {
                // Before anything is decided: what this device cannot open another one may have written.
                hasAsked = true
                try await takeLaterKeyring?()
                // It may open what was passed by.
                if try store.text(.cursor) != cursor {
                    progress.begin()
                    continue
                }
            }
            try progress.take(page, after: cursor) { try store.openedCount() }
            let before = report
            do {
                try take(page, &guardian, into: &report)
            } catch let broken as BrokenConfirmations {
                report = before
                try revoke(broken.confirmations)
                throw APIError.unexpectedReply
            }
            for change in page.changes { fetching.take(change.revision) }
            report.fetched += page.changes.count
            onProgress(report)
            if !page.more { horizon.end(fetching) }
            if !page.more { return try settleHeld(agreement, into: &report) }
            try Task.checkCancellation()
        }
    }

    /// Carries out what a page has.
    /// - Throws: ``BrokenConfirmations``.
    private func take(
        _ page: ChangePage, _ guardian: inout DeletionGuard, into report: inout SyncReport
    ) throws {
        try store.transaction {
            try checkConfirmations(against: page.changes)
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
                try endListing(into: &report)
                try endConfirmations()
            }
        }
    }

    /// Carries out the deletions that have waited and that a person has agreed to, and notes whether others wait.
    private func settleHeld(_ agreement: DeletionAgreement, into report: inout SyncReport) throws {
        try store.transaction {
            try store.forgetSettledHolds()
            var isHeld = false
            for deletion in try store.heldDeletions() {
                guard agreement.includes(deletion.collection) else {
                    isHeld = true
                    continue
                }
                try storeTombstone(deletion.id, deletion.revision, into: &report)
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

    /// Everything is listed from the beginning. That says nothing about what is not in it.
    private func beginListing(base: Int64?) throws {
        try store.transaction {
            try store.beginListing()
            guard let base else { return }
            // What was acknowledged may be lost.
            try store.forgetConfirmations()
            try store.set(.revisionBase, base)
            try store.set(.comparing, 1)
            try store.note(.timeWentBack)
        }
    }

    private func endListing(into report: inout SyncReport) throws {
        let listing = try store.number(.listing) ?? 0
        let isComparing = try store.number(.comparing) != nil
        let pointless = isComparing ? try pointlessCopies(listing) : []
        for item in try store.unlisted(listing) {
            try store.removeItem(item.id)
            if pointless.contains(item.id) {
                // Nobody has deleted it: were it in the trash, it would not be kept when it is lost again.
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
        if try isComparing || store.number(.copies) != nil {
            try forgetKeptElsewhere(into: &report)
            try store.set(.copies, nil)
        }
        try store.set(.comparing, nil)
    }

    // MARK: Time

    var moment: Date { now() }
}

extension Problem {
    /// Whether the server does not go on from the cursor that it was shown: too old, or none of its own.
    fileprivate var isAboutCursor: Bool { code == .cursorExpired || code == .malformedCursor }
}

extension Result where Failure == APIError {
    /// What a call of the API has come to.
    static func of(_ call: () async throws(APIError) -> Success) async -> Self {
        do throws(APIError) { return .success(try await call()) } catch { return .failure(error) }
    }
}

/// What the engine needs of the server.
protocol SyncServer: Sendable {
    /// - Parameter isMetaOnly: Without titles and bodies.
    /// - Throws: ``APIError/unexpectedReply`` for more than was asked for.
    func changes(
        since cursor: String?, limit: Int, isMetaOnly: Bool, reportsDeletions: Bool
    ) async throws(APIError) -> ChangePage
    /// One item as it is; nil when there is none.
    /// - Throws: ``APIError/unexpectedReply`` for another item.
    func item(_ id: ItemID) async throws(APIError) -> ItemState?
    /// Sends operations, all or nothing.
    /// - Returns: Their revisions, in order.
    /// - Throws: ``APIError/unexpectedReply`` for revisions of other items than those, and for none that can be theirs.
    func write(_ operations: [BatchOperation]) async throws(APIError) -> [Revision]
}

/// How much is done at once.
struct SyncLimits: Sendable {
    var page = 200
    var batch = 200
    var batchBytes = 8 << 20
    /// A batch that did not get through a slow line is sent in smaller ones, down to this size.
    var smallestBatchBytes = 64 << 10
    /// The number of times in a row that a push makes its batches smaller before it gives up.
    var slowdowns = 5
    var rounds = 16
    /// How often one round begins to list everything anew.
    var beginnings = 4
    /// How many changes one round follows at most, beside one for each item here that opens: a server cannot make those up.
    var changes = 4_000_000
    /// More deletions than this, or than a third of at least ten items, are not carried out before somebody has agreed.
    var deletions = 25
}

/// Makes one version of two that were made of the same one.
///
/// Returns nil when they cannot be merged; then both are kept.
public typealias MergeRule =
    @Sendable (_ collection: String, _ base: PlainItem?, _ mine: PlainItem, _ theirs: PlainItem) -> PlainItem?

/// The result of a sync.
public struct SyncReport: Sendable {
    /// Items that are other here than before: written or removed.
    public internal(set) var changed: Set<ItemID> = []
    /// Those of them that were deleted elsewhere: ``Vault/restore(_:)`` brings them back.
    public internal(set) var removed: Set<ItemID> = []
    /// The number of changes of other devices that were fetched.
    public internal(set) var fetched = 0
    /// The number of changes of this device that were sent and confirmed.
    public internal(set) var sent = 0
    /// Changes that the server does not take at present; see ``Vault/notices``.
    public internal(set) var unsent = 0
    /// True when deletions wait for the user's consent: see ``Vault/heldDeletions()``.
    public internal(set) var isHeld = false

    /// What a later round has done comes to it.
    mutating func add(_ later: SyncReport) {
        removed.subtract(later.changed)
        removed.formUnion(later.removed)
        changed.formUnion(later.changed)
        fetched += later.fetched
        sent += later.sent
        unsent = later.unsent
        isHeld = later.isHeld
    }
}
