/// What becomes of an item when the server tells of it: the one place where conflicts are decided. Pure.
enum Reconciliation: Hashable {
    /// Nothing new.
    case nothing
    /// Nobody has changed it here: take what the server has.
    case take
    /// Nobody has changed it here: it is deleted there.
    case remove
    /// Created again after that deletion, which the server has lost: it stays out of the listing, so that it is sent again.
    case sendAgain
    /// The server has what was sent from here and never confirmed. The change is done, or what was changed after it goes
    /// on from this revision.
    case confirmed(isDone: Bool)
    /// Changed here and there.
    case conflict
    /// Changed here, deleted there: the change is kept, and creates the item again.
    case keepAgainstDeletion
    /// Deleted here, changed there: the change is kept.
    case undoDeletion
    /// Deleted on both sides.
    case bothDeleted

    /// - Parameters:
    ///   - item: What the server was last seen to have.
    ///   - change: What was changed here and not confirmed.
    ///   - server: What it tells now.
    ///   - isComparing: Whether time went back there, so that it may have lost what is known. Of deletions only.
    static func decide(
        item: StoredItem?, change: LocalChange?, server: ItemState, isComparing: Bool = false
    ) -> Reconciliation {
        guard let change else { return withoutChange(item, server, isComparing) }
        guard let theirs = server.content else {
            if change.content == nil { return .bothDeleted }
            // A change that creates the item anew knows of the tombstone.
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
        // What has never been opened is looked at whenever it is told of: its key may be here by now.
        guard let item, !item.isSealed else { return .take }
        return item.revision == server.revision ? .nothing : .take
    }
}
