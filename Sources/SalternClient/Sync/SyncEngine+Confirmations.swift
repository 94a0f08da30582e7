/// A listing that contradicts what the server has acknowledged.
struct BrokenConfirmations: Error {
    var confirmations: [Confirmation]
}

/// Comparison of listings with acknowledged changes: of each, the next listing has that revision of the item or a later one.
extension SyncEngine {
    /// Compares a page with the acknowledged changes of its items, which count as shown then.
    /// - Throws: ``BrokenConfirmations``.
    func checkConfirmations(against changes: [ItemState]) throws {
        guard try store.hasConfirmations() else { return }
        let broken = try changes.compactMap { change in
            try store.takeConfirmation(of: change.id).flatMap { change.shows($0) ? nil : $0 }
        }
        if !broken.isEmpty { throw BrokenConfirmations(confirmations: broken) }
    }

    /// The listing has ended: what was acknowledged before it began was in it.
    ///
    /// A listing of everything can lack an item that another device has deleted long ago; ``Store/unlisted(_:)`` has those.
    /// - Throws: ``BrokenConfirmations``.
    func endConfirmations() throws {
        guard try store.hasConfirmations() else { return }
        let hidden = try store.confirmations(since: store.number(.listing) ?? 0)
        if !hidden.isEmpty { throw BrokenConfirmations(confirmations: hidden) }
        try store.forgetConfirmations()
    }

    /// The acknowledgements do not count: the changes are unsent again. Everything is listed from the beginning, for the server
    /// may have hidden more.
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
    /// Whether it is what was acknowledged, or later.
    fileprivate func shows(_ confirmation: Confirmation) -> Bool {
        // An edited item becomes no chunk, and what is not deleted has a content.
        guard revision >= confirmation.revision, deleted || !isChunk && content != nil else { return false }
        return revision > confirmation.revision || content?.digest == confirmation.digest
    }
}
