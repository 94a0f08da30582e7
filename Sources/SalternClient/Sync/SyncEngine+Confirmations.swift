/// A listing contradicts acknowledgements of the server.
struct BrokenConfirmations: Error {
    var confirmations: [Confirmation]
}

/// Comparison of listings with acknowledged changes. The next listing must contain each item with that revision or a
/// later one.
extension SyncEngine {
    /// Compares a page with the acknowledged changes of its items, and removes their records.
    /// - Throws: ``BrokenConfirmations``.
    func checkConfirmations(against changes: [ItemState]) throws {
        guard try store.hasConfirmations() else { return }
        let broken = try changes.compactMap { change in
            try store.takeConfirmation(of: change.id).flatMap { change.shows($0) ? nil : $0 }
        }
        if !broken.isEmpty { throw BrokenConfirmations(confirmations: broken) }
    }

    /// Checks at the end of a listing that it contained all earlier acknowledged changes.
    ///
    /// A complete listing can lack an item that another device has deleted long ago; ``Store/unlisted(_:)`` returns
    /// those.
    /// - Throws: ``BrokenConfirmations``.
    func endConfirmations() throws {
        guard try store.hasConfirmations() else { return }
        let hidden = try store.confirmations(since: store.number(.listing) ?? 0)
        if !hidden.isEmpty { throw BrokenConfirmations(confirmations: hidden) }
        try store.forgetConfirmations()
    }

    /// Revokes acknowledgements: the changes are unsent again. A complete listing starts, because the server may have
    /// hidden more.
    func revoke(_ confirmations: [Confirmation]) throws {
        try store.transaction {
            for confirmation in confirmations { try revoke(confirmation) }
            try store.beginListing()
        }
    }

    private func revoke(_ confirmation: Confirmation) throws {
        let id = confirmation.item
        _ = try store.takeConfirmation(of: id)
        if var later = try store.change(id) {
            guard later.content != nil, confirmation.digest != nil, later.base == confirmation.revision else { return }
            later.base = confirmation.base
            return try store.write(later, isSame: true)
        }
        let item = try store.item(id)
        var change = LocalChange(
            id: id, sequence: try store.nextSequence(), base: confirmation.base, content: item?.content,
            edit: item?.edit ?? 0)
        if confirmation.digest == nil {
            guard item == nil else { return }
            change.edit = try store.tombstone(id)?.edit ?? 0
        } else {
            guard item?.revision == confirmation.revision else { return }
        }
        change.sent = change.sending
        try store.write(change)
    }
}

extension ItemState {
    /// Returns true when this is the acknowledged state, or a later one.
    fileprivate func shows(_ confirmation: Confirmation) -> Bool {
        // An edited item does not become a chunk, and an item that is not deleted has content.
        guard revision >= confirmation.revision, deleted || !isChunk && content != nil else { return false }
        return revision > confirmation.revision || content?.digest == confirmation.digest
    }
}
