extension Vault {
    /// An edit whose item is made.
    private enum Step: Sendable {
        case put(PlainItem, ItemID, collection: String, over: ItemVersion?)
        case delete(ItemID)
    }

    /// Stores several edits together: all of them are on this device's disk when the call returns, and none when it throws,
    /// also after a crash. ``changes()`` reports them as one change. Edits of one item apply in their order.
    ///
    /// The next ``sync()`` sends them in one request, which the server carries out completely or not at all. They are sent in
    /// several requests where they are more than 200 or longer than 8 MiB, on a line that is too slow for one, and where
    /// an attachment of one of them still waits on this device. When the plan has no room for all of them, those are stored that
    /// fit. An item of them that is edited once more before the sync is sent on its own. Another device fetches items in
    /// pages, so it can have some of the edits for a moment before it has the others.
    ///
    /// ```swift
    /// var edits = VaultEdits()
    /// for id in selection { edits.delete(id) }
    /// edits.put(Note(text: joined), in: notes)
    /// try await vault.apply(edits)
    /// ```
    /// - Returns: Where each item was written, in the order of the edits, without the deletions. It is another id than that of
    ///   the edit only for an item that has changed since the version that was seen.
    /// - Throws: What ``put(_:_:in:over:)`` and ``VaultCollection/put(_:_:over:)`` throw, for the first edit that cannot be
    ///   stored.
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
                        let (item, version) = try await present(id, isSeen: seen != nil)
                        versions.updateValue(version, forKey: id)
                        before = item
                    }
                    let item: PlainItem
                    do { item = try make(before) } catch { throw error as? VaultError ?? .unreadable }
                    planned.updateValue(item, forKey: id)
                    steps.append(.put(item, id, collection: collection, over: seen))
                }
            }
            // Values are encoded outside of the vault. What was written meanwhile is carried over, too.
            if let places = try await carryOut(steps, inPlaceOf: versions) { return places }
        }
    }

    /// - Returns: nil, with nothing stored, when one of the items has another version by now.
    private func carryOut(
        _ steps: [Step], inPlaceOf versions: [ItemID: ItemVersion?]
    ) throws(VaultError) -> [ItemID]? {
        for (id, version) in versions where try self.version(of: id) != version { return nil }
        for case .put(let item, _, _, _) in steps { try refuseTooLong(item) }
        gathered = []
        defer { gathered = nil }
        let places: [ItemID] = try transaction {
            try store.together {
                var places: [ItemID] = []
                for step in steps {
                    switch step {
                    case .delete(let id): try delete(id)
                    case .put(let item, let id, let collection, let seen):
                        places.append(try putUnbounded(item, id, in: collection, over: seen))
                    }
                }
                return places
            }
        }
        let ids = gathered ?? []
        gathered = nil
        if !ids.isEmpty { notify(ids) }
        return places
    }
}
