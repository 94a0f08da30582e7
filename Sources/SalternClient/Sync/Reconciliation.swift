/// The decision about an item that the server has listed. It is pure, and the only place that finds conflicts.
/// `VersionApplier.resolve` resolves them, with the app's ``MergeRule``.
enum Reconciliation: Hashable {
    /// The listed state is already stored.
    case nothing
    /// There is no local change: store the server's version.
    case take
    /// There is no local change: the server has deleted the item.
    case remove
    /// The item was created again after that deletion, which the server has lost. It stays out of the listing, so that
    /// it is sent again.
    case sendAgain
    /// The server has content that this device sent without a confirmation. The change is done, or a later change
    /// continues from this revision.
    case confirmed(isDone: Bool)
    /// Changed on this device and on another one.
    case conflict
    /// Changed here, deleted by another device: the change is kept, and creates the item again.
    case keepAgainstDeletion
    /// Deleted here, changed by another device: the change is kept.
    case undoDeletion
    /// Deleted on both sides.
    case bothDeleted

    /// Decides about an item.
    /// - Parameters:
    ///   - item: The last received state of the server.
    ///   - change: The unconfirmed change of this device.
    ///   - server: The listed state.
    ///   - isComparing: True after a database rollback, when the server may have lost stored changes. Only used for
    ///     deletions.
    static func decide(
        item: StoredItem?, change: LocalChange?, server: ItemState, isComparing: Bool = false
    ) -> Reconciliation {
        guard let change else { return withoutChange(item, server, isComparing) }
        guard let theirs = server.content else {
            if change.content == nil { return .bothDeleted }
            // A change that creates the item again was made after the tombstone.
            return change.base == nil && change.sent == nil ? .nothing : .keepAgainstDeletion
        }
        if let mine = change.content, mine == theirs { return .confirmed(isDone: true) }
        if change.sent == .content(digest: theirs.digest) { return .confirmed(isDone: false) }
        if change.base == server.revision { return .nothing }
        return change.content == nil ? .undoDeletion : .conflict
    }

    private static func withoutChange(
        _ item: StoredItem?, _ server: ItemState, _ isComparing: Bool
    ) -> Reconciliation {
        if server.deleted {
            guard let item else { return .nothing }
            return isComparing && item.revision > server.revision ? .sendAgain : .remove
        }
        // An item that was never opened is taken at each listing, because its key may have arrived.
        guard let item, !item.isSealed else { return .take }
        return item.revision == server.revision ? .nothing : .take
    }
}

/// Decides if versions of the server count, by the keys, the log and the lists of this device.
struct VersionJudge {
    private let context: SyncContext
    private let store: Store
    /// The number of the log's head at which this device first had the version that is being applied, while it could
    /// not judge it; nil between two versions.
    var heldSince: Int64?

    init(_ context: SyncContext) {
        self.context = context
        store = context.store
    }

    private var sealer: any ItemSealing { context.sealer }

    // MARK: Versions of the server

    private func verdict(_ server: ItemState, _ content: ItemContent, over item: StoredItem?) -> ItemVerdict {
        sealer.judge(server, content, known: item.flatMap { $0.isSealed ? nil : $0 }, heldSince: heldSince)
    }

    /// Opens a version of the server; nil for one that cannot be opened, or does not count.
    func judged(_ server: ItemState, _ content: ItemContent, over item: StoredItem?) -> OpenedItem? {
        verdict(server, content, over: item).opened
    }

    func reasonPutAside(
        _ server: ItemState, _ content: ItemContent, over item: StoredItem?
    ) -> PutAsideReason? {
        guard case .putAside(let reason) = verdict(server, content, over: item) else { return nil }
        return reason
    }

    /// Returns an accepted version in the form of the store. An edit under another key was accepted with the known one.
    func stored(
        _ server: ItemState, _ content: ItemContent, _ opened: OpenedItem, over item: StoredItem?
    ) -> StoredItem {
        var judgedAt = sealer.head
        if judgedAt != nil, let item, !item.isSealed,
            sealer.hash(of: item.content, item.id) == sealer.hash(of: content, server.id)
        {
            judgedAt = item.judgedAt
        } else if judgedAt != nil, let heldSince {
            judgedAt = heldSince
        }
        return StoredItem(
            id: server.id, revision: server.revision, content: content, edit: opened.edit.number, judgedAt: judgedAt)
    }

    /// Returns the server's version when it is the base of the change, only sealed with another key. The change
    /// continues from it.
    ///
    /// Sealing again keeps the number of the edit. The restoration of a version is the next edit, and a change of its
    /// own.
    func resealed(_ server: ItemState, _ change: LocalChange, _ item: StoredItem?) -> StoredItem? {
        guard let content = server.content, let base = change.baseContent,
            let theirs = judged(server, content, over: item)
        else { return nil }
        let version = ItemContent(
            collection: content.collection, format: content.format, title: base.title, body: base.body)
        guard let known = try? sealer.open(version, server.id), known.item == theirs.item,
            theirs.edit.number == known.edit.number
                // Another member has sent the base again in the place of a refused version.
                || sealer.isOfVault && sealer.follows(theirs.edit, version, server.id)
        else { return nil }
        return stored(server, content, theirs, over: item)
    }

    /// Returns true when only entries that this device does not have can let a version count.
    func needsEntries(_ version: ItemState) throws -> Bool {
        guard let content = version.content else { return false }
        switch verdict(version, content, over: try store.item(version.id)) {
        case .accepted: return false
        case .unreadable: return sealer.needsEntries(content, nil)
        case .putAside(let reason): return sealer.needsEntries(content, reason)
        }
    }

    // MARK: Unknown keys and entries

    /// Returns true for content that is sealed with an unknown key.
    func isUnderUnknownKey(_ content: ItemContent) -> Bool {
        content.format == SealedBox.format && sealer.isUnderUnknownKey(content)
    }

    /// Returns true when the page contains an item sealed with an unknown key.
    func hasUnknownKey(_ page: ChangePage) -> Bool { page.changes.contains(where: namesUnknown) }

    /// Returns true for an item under an unknown key, or of an unknown entry of the log.
    func namesUnknown(_ version: ItemState) -> Bool {
        guard !version.isChunk, let content = version.content else { return false }
        return isUnderUnknownKey(content) || sealer.namesUnknownEntry(content, version.id)
    }

    // MARK: Accepted versions

    /// Returns true when the lists of managers do not have an accepted version.
    func hasGivenWay(_ item: StoredItem) -> Bool { sealer.rejection(of: item).map { !$0.isOpen } ?? false }

    /// Returns true when the server has another version than the known one, and no later one. Each version that counts
    /// is later than one that has given way.
    func isOutdated(_ theirs: StoredItem, by item: StoredItem) -> Bool {
        theirs.content != item.content && theirs.edit <= item.edit && !isKnown(theirs, as: item) && !hasGivenWay(item)
    }

    /// Returns true when a version is the known one in other bytes: the same edit and content, under the present key.
    private func isKnown(_ version: StoredItem, as item: StoredItem) -> Bool {
        version.edit == item.edit && sealer.isSameEdit(version.content, as: item.content, item.id)
    }

    /// Returns true when the unsent version is the known one, sent again.
    func isPushedBack(
        _ own: OpenedItem, _ collection: String, _ item: StoredItem
    ) -> Bool {
        sealer.follows(own.edit, item.content, item.id) && collection == item.content.collection
            && (try? sealer.open(item.content, item.id))?.item == own.item
    }
}

/// Copies of versions, kept beside the server's version. Every device with the sealed version makes the same copy. They
/// are made after a restore of the server, and when a store was copied with its unsent edits.
struct VersionCopies {
    private let context: SyncContext
    private let store: Store

    init(_ context: SyncContext) {
        self.context = context
        store = context.store
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Sends the known version again, as a later edit, because the server has an older one. The older one is kept
    /// beside it. It can be new content of a device that created the item again without the latest edit number.
    /// - Parameter older: The content of the older version; nil for one of which no copy is made.
    func pushBack(
        _ item: StoredItem, over theirs: StoredItem, _ older: PlainItem?, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        var kept = item
        kept.revision = theirs.revision
        try store.put(kept, listing: listing)
        guard let known = try? sealer.open(item.content, item.id),
            let content = try? sealer.seal(
                known.item, item.id, collection: item.content.collection,
                sealer.next(known.edit, after: item.content, item.id))
        else { return try store.note(.rolledBack, item.id) }
        try store.record(item.id, content: content, edit: SealedBox.Edit.number(after: item.edit), isSame: true)
        guard let older, try !wasReplaced(theirs, by: known) else { return try store.note(.rolledBack, item.id) }
        // The same version gets the same copy on every device, so repeating it has no effect.
        let copy = sealer.copyID(of: theirs.content, theirs.id)
        guard known.item != older || item.content.collection != theirs.content.collection,
            let sealed = try? sealer.seal(
                older, copy, collection: theirs.content.collection, sealer.copy(of: theirs.content, theirs.id))
        else { return try store.note(.rolledBack, item.id) }
        let isKnown =
            try store.current(copy) != nil || store.item(copy) != nil || store.trashed(copy) != nil
            || store.tombstone(copy) != nil
        if !isKnown {
            try recordCopy(copy, sealed)
            report.changed.insert(copy)
        }
        try store.note(.rolledBack, item.id, other: copy)
    }

    /// Returns true for an edit of a shared vault that this device, or the author of the known version, has replaced. A
    /// copy of it would bring back content under the signature of another member.
    private func wasReplaced(_ theirs: StoredItem, by known: OpenedItem) throws -> Bool {
        guard sealer.isOfVault else { return false }
        if sealer.follows(known.edit, theirs.content, theirs.id) { return true }
        let sealer = sealer
        var isReplaced = false
        try store.forEachReplaced(of: theirs.id) { version in
            isReplaced = isReplaced || sealer.isSameEdit(version.content, as: theirs.content, theirs.id)
        }
        return isReplaced
    }

    /// Keeps the server's version under the id, and the local version under another.
    func keepBoth(
        _ mine: ItemContent, _ theirs: StoredItem, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let own = try? sealer.open(mine, theirs.id) else {
            // It can only be kept under this id.
            guard sealer.canWrite else { return try store.put(theirs, listing: listing) }
            try store.record(theirs.id, content: mine, edit: SealedBox.Edit.number(after: theirs.edit))
            try store.put(theirs, listing: listing)
            return try store.note(.unreadableChange, theirs.id)
        }
        try store.put(theirs, listing: listing)
        if let other = try? sealer.open(theirs.content, theirs.id).item, other == own.item,
            mine.collection == theirs.content.collection
        {
            return
        }
        guard sealer.canSeal else {
            // The known version is among the replaced ones.
            try store.note(.conflict, theirs.id)
            report.changed.insert(theirs.id)
            return
        }
        let (copy, isKept) = try copyPlace(of: mine, theirs.id)
        if !isKept {
            let edit = sealer.copy(of: mine, theirs.id)
            try recordCopy(copy, sealer.seal(own.item, copy, collection: mine.collection, edit))
        }
        try store.note(.conflict, theirs.id, other: copy)
        report.changed.formUnion([theirs.id, copy])
    }

    /// Returns the id of a version's copy beside the server's version, and true when the copy exists already. An edit
    /// or a deletion of an existing copy was made by a user who has seen it.
    func copyPlace(of version: ItemContent, _ id: ItemID) throws -> (id: ItemID, isKept: Bool) {
        let copy = sealer.copyID(of: version, id)
        guard let there = try store.current(copy) ?? store.trashed(copy)?.content ?? store.item(copy)?.content else {
            // A tombstone of an item that never existed here is not authenticated.
            return (try store.tombstone(copy) == nil ? copy : context.newID(), false)
        }
        return (try? sealer.open(there, copy)) == nil ? (context.newID(), false) : (copy, true)
    }

    /// Stores a copy that this device makes. Other devices make the same one, so a change before it is sent is an edit
    /// of theirs.
    func recordCopy(_ id: ItemID, _ content: ItemContent) throws {
        try store.record(id, content: content, edit: 1)
        guard var change = try store.change(id), change.base == nil else { return }
        change.baseContent = (content.title?.bytes, content.body.bytes)
        try store.write(change)
    }

    /// Continues a change from a copy when the server has lost its base. Other devices keep that base as a copy beside
    /// the server's version, so the change becomes an edit of that copy.
    /// - Returns: False when it does not apply, for example because a user has changed the copy.
    func goOnFromLostBase(
        _ change: LocalChange, _ own: PlainItem, _ taken: StoredItem, _ theirs: SealedBox.Edit, _ item: StoredItem?,
        _ listing: Int64, into report: inout SyncReport
    ) throws -> Bool {
        guard try store.number(.comparing) != nil, let mine = change.content, let base = change.baseContent,
            // Other devices may have a copy of content that was sent.
            change.sent == nil
        else { return false }
        let lost = ItemContent(
            collection: item?.content.collection ?? mine.collection, format: mine.format, title: base.title,
            body: base.body)
        if sealer.follows(theirs, lost, change.id) { return false }
        guard let version = try? sealer.open(lost, change.id).item else { return false }
        let copy = sealer.copyID(of: lost, change.id)
        guard try store.change(copy) == nil, try store.trashed(copy) == nil, try store.tombstone(copy) == nil else {
            return false
        }
        let there = try store.item(copy)?.content
        let begun =
            try there ?? sealer.seal(version, copy, collection: lost.collection, sealer.copy(of: lost, change.id))
        guard let known = try? sealer.open(begun, copy), known.edit.isCopy, known.item == version else { return false }
        try store.put(taken, listing: listing)
        if there == nil { try recordCopy(copy, begun) }
        if own != version || mine.collection != lost.collection {
            let edit = sealer.next(known.edit, after: begun, copy)
            try store.record(
                copy, content: sealer.seal(own, copy, collection: mine.collection, edit), edit: edit.number)
        }
        try store.note(.conflict, taken.id, other: copy)
        report.changed.formUnion([taken.id, copy])
        return true
    }

    /// Removes an unconfirmed copy of an older version when its successor arrives. A copy that has arrived at the
    /// server is reported.
    func forgetCopy(of id: ItemID, replacedBy edit: SealedBox.Edit, into report: inout SyncReport) throws {
        for notice in try store.notices() where notice.kind == .rolledBack && notice.item == id {
            guard let copy = notice.other, let change = try store.change(copy), change.base == nil,
                let content = change.content,
                let own = try? sealer.open(content, copy).edit, own.isCopy, own.previous == edit.previous
            else { continue }
            try store.forgetChange(copy)
            try store.forgetNotice(notice.number)
            try store.note(.rolledBack, id)
            report.changed.insert(copy)
        }
    }

    /// Returns copies whose versions have returned under another id. The server has lost them by the restore after
    /// which they were made, or never confirmed them.
    func pointlessCopies(_ listing: Int64) throws -> Set<ItemID> {
        var copies: [[UInt8]: ItemID] = [:]
        for item in try store.unlisted(listing) where try item.edit == 1 && store.change(item.id) == nil {
            if let edit = try? sealer.open(item.content, item.id).edit, edit.isCopy { copies[edit.previous] = item.id }
        }
        try store.forEachChange { change in
            guard change.base == nil, change.edit == 1, let content = change.content,
                let edit = try? sealer.open(content, change.id).edit, edit.isCopy
            else { return }
            copies[edit.previous] = change.id
        }
        if copies.isEmpty { return [] }
        var pointless: Set<ItemID> = []
        try store.forEachContent(listed: listing) { id, content in
            if let hash = sealer.hash(of: content, id), let copy = copies[hash] { pointless.insert(copy) }
        }
        return pointless
    }

    /// Returns the copy of a version that another device has made and sent.
    func keptCopy(of version: ItemContent, _ id: ItemID) throws -> ItemID? {
        guard let copy = try store.item(sealer.copyID(of: version, id)), try store.change(copy.id) == nil,
            let own = try? sealer.open(version, id), let kept = try? sealer.open(copy.content, copy.id),
            own.item == kept.item, version.collection == copy.content.collection
        else { return nil }
        return copy.id
    }

    /// Removes changes that other devices have already kept as copies. The server has lost them by a database rollback,
    /// also after the comparison on this device. Every unsent change is read, so it runs only after a copy has arrived.
    func forgetKeptElsewhere(into report: inout SyncReport) throws {
        try store.forEachChange { change in
            guard change.wasSent, let mine = change.content, let item = try store.item(change.id),
                let copy = try keptCopy(of: mine, change.id)
            else { return }
            try store.forgetChange(change.id)
            try store.note(.conflict, item.id, other: copy)
            report.changed.insert(item.id)
        }
    }
}
