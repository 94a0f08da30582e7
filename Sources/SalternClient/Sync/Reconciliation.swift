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
