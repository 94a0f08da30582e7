/// Fetches the changes of other devices, and applies them.
struct ChangeFetcher {
    private let context: SyncContext
    private let store: Store
    private let server: any SyncServer
    private let limits: SyncLimits
    private let horizon: SyncHorizon
    private let pages: PageFetcher
    private let listing: ListingApplier
    private let applier: VersionApplier
    private let setAside: SetAsideVersions
    private let judge: VersionJudge
    /// Fetches later keys and uses them: a keyring, or the log of a shared vault.
    private let learn: () async throws -> Void
    private let onProgress: (SyncReport) -> Void

    /// - Parameters:
    ///   - horizon: Receives the fetched revisions.
    ///   - learn: Fetches later keys and uses them: a keyring, or the log of a shared vault.
    ///   - onProgress: Receives the report after each page.
    init(
        _ context: SyncContext, _ server: any SyncServer, _ limits: SyncLimits, _ horizon: SyncHorizon,
        _ listing: ListingApplier, _ applier: VersionApplier, _ setAside: SetAsideVersions, _ judge: VersionJudge,
        learn: @escaping () async throws -> Void, onProgress: @escaping (SyncReport) -> Void
    ) {
        self.context = context
        store = context.store
        self.server = server
        self.limits = limits
        self.horizon = horizon
        pages = PageFetcher(context.store, server, limits)
        self.listing = listing
        self.applier = applier
        self.setAside = setAside
        self.judge = judge
        self.learn = learn
        self.onProgress = onProgress
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Fetches and applies pages, from the cursor to the end of the listing.
    /// - Parameter learns: False to judge by the known log of a shared vault.
    func pull(
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
                page = try await pages.page(
                    since: cursor, reportsDeletions: reportsDeletions, isLong: cursor == nil || hasMore)
            } catch APIError.problem(let problem)
                where problem.isAboutCursor && cursor != nil && beginnings < limits.beginnings
            {
                beginnings += 1
                try listing.begin(base: nil)
                progress.begin()
                continue
            }
            hasMore = page.more
            if try listing.hasNewBase(page) {
                // A server with another revision base in every reply is not usable.
                guard beginnings < limits.beginnings else { throw APIError.unexpectedReply }
                beginnings += 1
                try listing.begin(base: page.revisionBase)
                progress.begin()
                if cursor != nil { continue }
            }
            if sealer.isOfVault {
                // The known log judges all pages before it gets later entries: an entry can cut a writer off, and then
                // only edits count that were accepted before.
                if learns, !hasAsked {
                    lacking += page.changes.filter(judge.namesUnknown).prefix(
                        SetAsideVersions.singleFetches - lacking.count)
                }
            } else if !hasAsked, try judge.hasUnknownKey(page) || StoreKeys(store).hasUnread() {
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
                try listing.apply(page, &guardian, isProvisional: !learns, into: &report)
            } catch let broken as BrokenConfirmations {
                report = before
                try listing.revoke(broken)
                throw APIError.unexpectedReply
            }
            for change in page.changes { fetching.take(change.revision) }
            report.fetched += page.changes.count
            onProgress(report)
            if !page.more {
                horizon.end(fetching)
                try listing.settleHeld(agreement, into: &report)
                guard !lacking.isEmpty, !hasAsked else { return }
                hasAsked = true
                try await learn()
                try await setAside.judgeAgain(&guardian, isProvisional: !learns, into: &report)
                try listing.settleHeld(agreement, into: &report)
                for version in lacking { try setAside.noteUnknown(version) }
                if try store.text(.cursor) != nil { return }
                progress.begin()
                fetching = horizon.begin()
            }
            try Task.checkCancellation()
        }
    }

    /// Decides about changes that fetching has not resolved, because the server does not list older changes again.
    /// Otherwise one such change would block all others permanently.
    func settle(_ disputes: [Dispute], isProvisional: Bool, into report: inout SyncReport) async throws {
        for dispute in disputes {
            let id = dispute.change.id
            guard try store.change(id)?.base == dispute.change.base, try store.change(id) != nil else { continue }
            let state = try await Result.of({ () throws(APIError) in try await server.item(id) }).get()
            try store.transaction {
                if let state {
                    try applier.apply(state, isProvisional: isProvisional, into: &report)
                } else {
                    try applier.storeTombstone(id, dispute.revision ?? Revision(0), into: &report)
                }
            }
        }
    }
}

/// Applies the pages of a listing, and keeps the state of the listing.
struct ListingApplier {
    private let context: SyncContext
    private let store: Store
    private let judge: VersionJudge
    private let copies: VersionCopies
    private let refused: RefusedVersions
    private let applier: VersionApplier
    private let confirmations: Confirmations

    init(
        _ context: SyncContext, _ judge: VersionJudge, _ copies: VersionCopies, _ refused: RefusedVersions,
        _ applier: VersionApplier
    ) {
        self.context = context
        store = context.store
        self.judge = judge
        self.copies = copies
        self.refused = refused
        self.applier = applier
        confirmations = Confirmations(context.store)
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Applies a page.
    /// - Parameter isProvisional: True while the log of a shared vault can have later entries, which are fetched next.
    /// - Throws: ``BrokenConfirmations``.
    func apply(
        _ page: ChangePage, _ guardian: inout DeletionGuard, isProvisional: Bool, into report: inout SyncReport
    ) throws {
        try store.transaction {
            try confirmations.check(against: page.changes)
            for change in page.changes { try refused.forgetFormerVersion(before: change) }
            let held = try guardian.held(among: page.changes)
            let listing = try store.number(.listing) ?? 0
            for change in page.changes where try !isChunkNoted(change) {
                if held.contains(change.id) {
                    try store.hold(change.id, change.revision, listing: listing)
                } else {
                    try applier.apply(change, isProvisional: isProvisional, into: &report)
                }
            }
            try store.set(.cursor, Array(page.cursor.utf8))
            if !page.more {
                try end(&guardian, into: &report)
                try confirmations.endListing()
            }
        }
    }

    /// Records a chunk without its content.
    /// - Returns: True for a chunk.
    private func isChunkNoted(_ change: ItemState) throws -> Bool {
        // An item that this device stores does not become a chunk because of a server's reply.
        guard change.isChunk, try store.item(change.id) == nil, try store.change(change.id) == nil else { return false }
        if change.deleted {
            try store.loseChunk(change.id)
        } else {
            try store.noteChunk(change.id, change.revision, storedAt: change.updatedAt)
        }
        return true
    }

    /// Revokes the acknowledgements that a page contradicts.
    func revoke(_ broken: BrokenConfirmations) throws { try confirmations.revoke(broken.confirmations) }

    /// Carries out waiting deletions that the user has approved, and records if others wait.
    func settleHeld(_ agreement: DeletionAgreement, into report: inout SyncReport) throws {
        try store.transaction {
            try store.forgetSettledHolds()
            var isHeld = false
            for deletion in try store.heldDeletions() {
                // A later list or entry can let the version count, and a user can have changed it.
                if deletion.isRefusal, try !refused.isRefused(deletion.id) {
                    try store.forgetHold(deletion.id)
                    continue
                }
                guard agreement.includes(deletion.collection) else {
                    isHeld = true
                    continue
                }
                if deletion.isRefusal {
                    try refused.withdraw(deletion.id, into: &report)
                } else {
                    try applier.storeTombstone(deletion.id, deletion.revision, into: &report)
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

    func hasNewBase(_ page: ChangePage) throws -> Bool {
        guard let base = page.revisionBase else { return false }
        let known = try store.number(.revisionBase)
        if known == nil { try store.set(.revisionBase, base) }
        return known.map { $0 != base } ?? false
    }

    /// Starts a complete listing. It is no statement about items that it does not contain.
    func begin(base: Int64?) throws {
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

    private func end(_ guardian: inout DeletionGuard, into report: inout SyncReport) throws {
        let listing = try store.number(.listing) ?? 0
        let isComparing = try store.number(.comparing) != nil
        let pointless = isComparing ? try copies.pointlessCopies(listing) : []
        let unlisted = try store.unlisted(listing)
        let held = try refused.heldRefusals(among: unlisted, &guardian)
        for item in unlisted {
            if held.contains(item.id) {
                try store.hold(item.id, item.revision, listing: listing, isRefusal: true)
                continue
            }
            try store.removeItem(item.id)
            // While no manager has decided about an accepted version, it waits as a change.
            if sealer.isOfVault, item.isSealed || judge.hasGivenWay(item) {
                // Nothing that no rule has accepted becomes a change of this device.
                if !item.isSealed {
                    try store.trash(item, at: context.moment)
                    try store.storeTombstone(item.id, item.revision, at: context.moment)
                    try store.note(.refused, item.id)
                }
                report.changed.insert(item.id)
            } else if pointless.contains(item.id) {
                // No user has deleted it. In the trash it would not be kept when it is lost again.
                report.changed.insert(item.id)
            } else if isComparing, try store.change(item.id) == nil,
                let copy = try copies.keptCopy(of: item.content, item.id)
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
            try copies.forgetKeptElsewhere(into: &report)
            try store.set(.copies, nil)
        }
        try store.set(.comparing, nil)
    }
}

/// Ends a round against a hostile server with endless pages. Revisions rise within a listing, so no change is
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

extension Problem {
    /// True when the server rejects the cursor: it is too old, or of another server.
    fileprivate var isAboutCursor: Bool { code == .cursorExpired || code == .malformedCursor }
}
