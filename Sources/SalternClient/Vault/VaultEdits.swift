/// Several edits that are stored together (``Vault/apply(_:)``).
///
/// ```swift
/// var edits = VaultEdits()
/// let id = edits.put(List(name: "Shopping"), in: lists)
/// edits.put(Note(text: "Buy salt.", list: id), in: notes)
/// edits.delete(draft)
/// try await vault.apply(edits)
/// ```
public struct VaultEdits {
    enum Edit {
        /// - `make`: Returns the new item for the present one; nil where there is none.
        case put(ItemID, collection: String, over: ItemVersion?, make: (PlainItem?) throws -> PlainItem)
        case delete(ItemID)
    }

    private(set) var edits: [Edit] = []

    /// Creates an empty list of edits.
    public init() {}

    /// The number of edits.
    public var count: Int { edits.count }

    /// True when there are no edits.
    public var isEmpty: Bool { edits.isEmpty }

    /// Adds the writing of an item, with the rules of ``VaultCollection/put(_:_:over:)``.
    ///
    /// ```swift
    /// edits.put(note, id, in: vault.collection("notes"))
    /// ```
    /// - Returns: The id of the item.
    @discardableResult
    public mutating func put<Value>(
        _ value: Value, _ id: ItemID = .random(), in collection: VaultCollection<Value>, over seen: ItemVersion? = nil
    ) -> ItemID {
        edits.append(.put(id, collection: collection.name, over: seen) { try collection.item(value, over: $0, seen) })
        return id
    }

    /// Adds the writing of an item with a title; nil removes the present title.
    ///
    /// ```swift
    /// edits.put(note, id, title: "Shopping", in: notes)
    /// ```
    /// - Returns: The id of the item.
    @discardableResult
    public mutating func put<Value>(
        _ value: Value, _ id: ItemID = .random(), title: String?, in collection: VaultCollection<Value>,
        over seen: ItemVersion? = nil
    ) -> ItemID {
        edits.append(
            .put(id, collection: collection.name, over: seen) { before in
                PlainItem(title: title, body: try collection.item(value, over: before, seen).body)
            })
        return id
    }

    /// Adds the writing of an item, with the rules of ``Vault/put(_:_:in:over:)``.
    ///
    /// ```swift
    /// edits.put(PlainItem(body: attachment.body()), id, in: "files")
    /// ```
    public mutating func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) {
        edits.append(.put(id, collection: collection, over: seen) { _ in item })
    }

    /// Adds the deletion of an item. A missing item is not an error.
    ///
    /// ```swift
    /// for id in selection { edits.delete(id) }
    /// ```
    public mutating func delete(_ id: ItemID) { edits.append(.delete(id)) }
}

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
