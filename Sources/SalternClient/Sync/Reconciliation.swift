/// The decision about an item that the server has listed. It is pure, and the only place that finds conflicts.
/// `SyncEngine.resolve` resolves them, with the app's ``MergeRule``.
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

/// Copies of versions, kept beside the server's version. Every device with the sealed version makes the same copy. They
/// are made after a restore of the server, and when a store was copied with its unsent edits.
extension SyncEngine {
    /// Returns the id of a version's copy beside the server's version, and true when the copy exists already. An edit
    /// or a deletion of an existing copy was made by a user who has seen it.
    func copyPlace(of version: ItemContent, _ id: ItemID) throws -> (id: ItemID, isKept: Bool) {
        let copy = sealer.copyID(of: version, id)
        guard let there = try store.current(copy) ?? store.trashed(copy)?.content ?? store.item(copy)?.content else {
            // A tombstone of an item that never existed here is not authenticated.
            return (try store.tombstone(copy) == nil ? copy : newID(), false)
        }
        return (try? sealer.open(there, copy)) == nil ? (newID(), false) : (copy, true)
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
