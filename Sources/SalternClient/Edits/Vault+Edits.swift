extension Vault {
    /// An edit whose item has been encoded.
    private enum Step: Sendable {
        case put(PlainItem, ItemID, collection: String, over: ItemVersion?)
        case delete(ItemID)
    }

    /// Stores several edits together. When the call returns, all of them are on this device's disk. When it throws,
    /// none is, even after a crash. ``changes()`` reports them as one change. Edits of one item apply in their order.
    ///
    /// The next ``sync()`` sends them in one request, which the server applies completely or not at all. Several
    /// requests are sent in these cases:
    ///
    /// - There are more than 200 edits, or they are longer than 8 MiB.
    /// - The connection is too slow for one request.
    /// - An attachment of one of them still waits on this device.
    ///
    /// When the plan has no room for all of them, those that fit are stored. An item that is edited again before the
    /// sync is sent separately. Another device fetches items in pages, so it can have a part of the edits for a moment.
    ///
    /// ```swift
    /// var edits = VaultEdits()
    /// for id in selection { edits.delete(id) }
    /// edits.put(Note(text: joined), in: notes)
    /// try await vault.apply(edits)
    /// ```
    /// - Returns: The id under which each item was written, in the order of the edits, without the deletions. It
    ///   differs from the edit's id only for an item that has changed since the version that was seen.
    /// - Throws: The errors of ``put(_:_:in:over:)`` and ``VaultCollection/put(_:_:over:)``, for the first edit that
    ///   cannot be stored.
    @discardableResult
    public nonisolated func apply(_ edits: VaultEdits) async throws(VaultError) -> [ItemID] {
        while true {
            var planned: [ItemID: PlainItem?] = [:]
            var versions: [ItemID: ItemVersion?] = [:]
            var steps: [Step] = []
            for edit in edits.edits {
                switch edit {
                case .delete(let id):
                    planned.updateValue(nil, forKey: id)
                    steps.append(.delete(id))
                case .put(let id, let collection, let seen, let make):
                    var before: PlainItem?
                    if let known = planned[id] {
                        before = known
                    } else {
                        let (item, version) = try await perform { _, items in
                            try items.present(id, isSeen: seen != nil)
                        }
                        versions.updateValue(version, forKey: id)
                        before = item
                    }
                    let item: PlainItem
                    do { item = try make(before) } catch { throw error as? VaultError ?? .unreadable }
                    planned.updateValue(item, forKey: id)
                    steps.append(.put(item, id, collection: collection, over: seen))
                }
            }
            // Values are encoded outside of the vault. Items that were written during that time are encoded again.
            if let places = try await carryOut(steps, inPlaceOf: versions) { return places }
        }
    }

    /// Stores the edits.
    /// - Returns: nil, with nothing stored, when one of the items has another version now.
    private func carryOut(
        _ steps: [Step], inPlaceOf versions: [ItemID: ItemVersion?]
    ) throws(VaultError) -> [ItemID]? {
        for (id, version) in versions where try self.version(of: id) != version { return nil }
        for case .put(let item, _, _, _) in steps { try plan.refuseTooLong(item) }
        let scope = owners.account.scope
        return try scope.gathering { () throws(VaultError) in
            try scope.transaction {
                try scope.store.together {
                    var places: [ItemID] = []
                    for step in steps {
                        switch step {
                        case .delete(let id): try items.delete(id)
                        case .put(let item, let id, let collection, let seen):
                            places.append(try items.putUnbounded(item, id, in: collection, over: seen))
                        }
                    }
                    return places
                }
            }
        }
    }
}
