internal import Cryptography
internal import Foundation

/// The items of one collection as values of one type, as JSON inside of what is sealed.
public struct VaultCollection<Value: Codable & Sendable>: Sendable {
    /// The name, which the server sees: `[a-z0-9-]{1,32}`.
    public let name: String
    let vault: Vault
    let schema: ItemSchema<Value>

    /// Returns the items that can be read, and beside them those that cannot, each with the reason.
    ///
    /// ```swift
    /// let contents = try await notes.contents()
    /// print(contents.items.count, "notes, unreadable:", contents.unreadable.count)
    /// ```
    public func contents() async throws(VaultError) -> CollectionContents<Value> {
        let (items, sealed) = try await vault.items(name)
        var contents = CollectionContents<Value>()
        for id in sealed { contents.unreadable[id] = .doesNotOpen }
        for (id, item) in items {
            do {
                contents.items[id] = try schema.read(item.body).value
                contents.titles[id] = item.title
            } catch {
                let number = ItemSchema<Value>.number(of: JSONTree(item.body.withUnsafeBytes { [UInt8]($0) }))
                contents.unreadable[id] = number > schema.number ? .isOfLaterSchema(number) : .isOfAnotherType
                contents.decodingErrors[id] = error
            }
        }
        return contents
    }

    /// Every item, by id: for who needs them all, as an export does. A list takes ``contents()``.
    ///
    /// ```swift
    /// for (id, note) in try await notes.all() { print(id, note.text) }
    /// ```
    /// - Throws: ``VaultError/unreadable`` when there is one that cannot be read.
    public func all() async throws(VaultError) -> [ItemID: Value] {
        let contents = try await contents()
        guard contents.unreadable.isEmpty else { throw .unreadable }
        return contents.items
    }

    /// Returns one item; nil when there is none.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Throws: ``VaultError/unreadable`` when it cannot be read.
    public subscript(_ id: ItemID) -> Value? {
        get async throws(VaultError) {
            guard let item = try await vault.item(id) else { return nil }
            do { return try schema.read(item.body).value } catch { throw .unreadable }
        }
    }

    /// An item's title; nil when it has none, or there is no item.
    ///
    /// ```swift
    /// print(try await notes.title(of: id) ?? "untitled")
    /// ```
    public func title(of id: ItemID) async throws(VaultError) -> String? { try await vault.item(id)?.title }

    /// Writes an item, a new one unless an id is given. An item that is there keeps its title.
    ///
    /// Members of an item that is there and that `Value` does not know stay, at any depth: a later version of the app may have
    /// written them.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Parameter seen: The version that the person has changed; see ``Vault/put(_:_:in:over:)``. With it, an item of
    ///   another type can be written over.
    /// - Returns: Where it was written.
    /// - Throws: ``VaultError/unreadable`` when what is there under the id cannot be read: nobody can have seen what would
    ///   be lost. ``VaultError/invalidCollection(_:)`` for a name that no collection can have.
    @discardableResult
    public func put(
        _ value: Value, _ id: ItemID = .random(), over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        try await vault.put(id, in: name, over: seen) { before in
            PlainItem(title: before?.title, body: try body(of: value, over: before, isSeen: seen != nil))
        }
    }

    /// Writes an item with a title; nil removes the one that is there. See ``put(_:_:over:)``.
    ///
    /// ```swift
    /// try await notes.put(Note(text: "Buy salt."), title: "Shopping")
    /// ```
    @discardableResult
    public func put(
        _ value: Value, _ id: ItemID = .random(), title: String?, over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        try await vault.put(id, in: name, over: seen) { before in
            PlainItem(title: title, body: try body(of: value, over: before, isSeen: seen != nil))
        }
    }

    private func body(of value: Value, over before: PlainItem?, isSeen: Bool) throws -> SecureBytes {
        if let before, !isSeen { _ = try schema.read(before.body) }
        return try schema.body(of: value, over: before?.body)
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    ///
    /// Example: "Edit" in docs/app.md.
    public func version(of id: ItemID) async throws(VaultError) -> ItemVersion? { try await vault.version(of: id) }

    /// Deletes an item; see ``Vault/delete(_:)``.
    ///
    /// Example: "Delete and restore" in docs/app.md.
    public func delete(_ id: ItemID) async throws(VaultError) { try await vault.delete(id) }

    /// Restores a deleted item from the trash of this device; see ``Vault/restore(_:)``.
    ///
    /// Example: "Delete and restore" in docs/app.md.
    public func restore(_ id: ItemID) async throws(VaultError) { try await vault.restore(id) }
}

extension Vault {
    /// Returns a collection, whose items are values of one type. Nothing is read or written yet.
    ///
    /// Example: "Settings" in docs/app.md.
    /// - Parameter schema: For a type whose older form needs a migration.
    public nonisolated func collection<Value>(
        _ name: String, of type: Value.Type = Value.self, schema: ItemSchema<Value> = ItemSchema()
    ) -> VaultCollection<Value> {
        VaultCollection(name: name, vault: self, schema: schema)
    }

    /// Writes an item that is made of the one that is there, without a gap between reading and writing.
    /// - Parameter make: Gets the item; nil when there is none, or none that opens and `seen` is given.
    func put(
        _ id: ItemID, in collection: String, over seen: ItemVersion?, _ make: @Sendable (PlainItem?) throws -> PlainItem
    ) throws(VaultError) -> ItemID {
        guard CollectionName.isValid(collection) else { throw .invalidCollection(collection) }
        let before: PlainItem?
        do throws(VaultError) { before = try item(id) } catch {
            guard case .unreadable = error, seen != nil else { throw error }
            before = nil
        }
        let next: PlainItem
        do { next = try make(before) } catch { throw error as? VaultError ?? .unreadable }
        return try put(next, id, in: collection, over: seen)
    }
}

/// A version of an item, for a later ``VaultCollection/put(_:_:over:)`` to compare.
public struct ItemVersion: Hashable, Sendable {
    let digest: [UInt8]
}
