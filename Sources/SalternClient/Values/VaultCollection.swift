internal import Cryptography
internal import Foundation

/// The items of one collection as values of one type, as JSON inside of what is sealed.
///
/// Values are encoded and decoded where the functions are called. So `Value` can be a type of the main actor, as types are in a
/// module whose default isolation is `MainActor`; then the functions are called on the main actor.
public struct VaultCollection<Value: Codable>: Sendable {
    /// The name, which the server sees: `[a-z0-9-]{1,32}`.
    public let name: String
    let vault: Vault
    let schema: ItemSchema<Value>

    /// Returns the items that can be read, and beside them those that cannot, each with the reason.
    ///
    /// ```swift
    /// let contents = try await notes.contents(sorted: .by(\.text))
    /// print(contents.entries.count, "notes, unreadable:", contents.unreadable.count)
    /// ```
    /// - Parameter order: The order of ``CollectionContents/entries``.
    public func contents(
        sorted order: CollectionOrder<Value> = .byTitle
    ) async throws(VaultError) -> CollectionContents<Value> {
        let (items, sealed) = try await vault.items(name)
        var contents = CollectionContents<Value>()
        for id in sealed { contents.unreadable[id] = .doesNotOpen }
        var entries: [CollectionEntry<Value>] = []
        for (id, (item, version)) in items {
            do {
                let value = try schema.read(item.body).value
                contents.items[id] = value
                contents.titles[id] = item.title
                entries.append(CollectionEntry(id: id, title: item.title, value: value, version: version))
            } catch {
                let number = ItemSchema<Value>.number(of: JSONTree(item.body.withUnsafeBytes { [UInt8]($0) }))
                contents.unreadable[id] = number > schema.number ? .isOfLaterSchema(number) : .isOfAnotherType
                contents.decodingErrors[id] = error
            }
        }
        contents.entries = order.sort(entries)
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

    /// Returns one item with its title and its version; nil when there is none. The three belong together, which separate calls
    /// do not guarantee.
    ///
    /// ```swift
    /// guard let entry = try await notes.entry(id) else { return }
    /// let place = try await notes.put(Note(text: typed), id, over: entry.version)
    /// print(place == id ? "saved" : "saved beside another version")
    /// ```
    /// - Throws: ``VaultError/unreadable`` when the item cannot be read.
    public func entry(_ id: ItemID) async throws(VaultError) -> CollectionEntry<Value>? {
        guard let present = try await vault.presentItem(id) else { return nil }
        do {
            let value = try schema.read(present.item.body).value
            return CollectionEntry(id: id, title: present.item.title, value: value, version: present.version)
        } catch {
            throw .unreadable
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
        try await write(id, over: seen) { try item(value, over: $0, seen) }
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
        try await write(id, over: seen) { PlainItem(title: title, body: try item(value, over: $0, seen).body) }
    }

    /// Changes one item: reads it, calls a function with its value, and writes the result. When the item changes in between, by a
    /// sync or by another call, nothing is written, and the function is called again with the later value. So no change is lost.
    ///
    /// The item keeps its title, its collection and the members that `Value` does not know. A value that stays as it was writes
    /// nothing.
    ///
    /// ```swift
    /// try await notes.edit(id) { $0.text += "\nBuy pepper." }
    /// ```
    /// - Parameter change: Changes the value. It can be called several times. An error that it throws leaves the item as it is.
    /// - Returns: The value that is stored now.
    /// - Throws: ``VaultError/notFound`` when there is no such item. ``VaultError/unreadable`` when it cannot be read.
    @discardableResult
    public func edit(
        _ id: ItemID, _ change: (inout Value) throws(VaultError) -> Void
    ) async throws(VaultError) -> Value {
        while true {
            guard let present = try await vault.presentItem(id) else { throw .notFound }
            var value: Value
            do { value = try schema.read(present.item.body).value } catch { throw .unreadable }
            try change(&value)
            let item: PlainItem
            do {
                item = PlainItem(
                    title: present.item.title, body: try schema.body(of: value, over: present.item.body))
            } catch {
                throw .unreadable
            }
            let place = try await vault.put(
                item, id, in: present.collection, over: nil, inPlaceOf: present.version)
            if place != nil { return value }
        }
    }

    private func write(
        _ id: ItemID, over seen: ItemVersion?, _ make: (PlainItem?) throws -> PlainItem
    ) async throws(VaultError) -> ItemID {
        while true {
            let (before, version) = try await vault.present(id, isSeen: seen != nil)
            let item: PlainItem
            do { item = try make(before) } catch { throw .unreadable }
            // The value is encoded outside of the vault. What was written meanwhile is carried over, too.
            if let place = try await vault.put(item, id, in: name, over: seen, inPlaceOf: version) { return place }
        }
    }

    /// Returns the item of a value that is written over another one.
    /// - Parameter before: The item that is there; nil when there is none, or none that opens and a version was seen.
    func item(_ value: Value, over before: PlainItem?, _ seen: ItemVersion?) throws -> PlainItem {
        if let before, seen == nil { _ = try schema.read(before.body) }
        return PlainItem(title: before?.title, body: try schema.body(of: value, over: before?.body))
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    ///
    /// Example: "Edit" in docs/app.md.
    public func version(of id: ItemID) async throws(VaultError) -> ItemVersion? { try await vault.version(of: id) }

    /// Deletes an item; see ``Vault/delete(_:)``.
    ///
    /// Example: "Edit" in docs/app.md.
    public func delete(_ id: ItemID) async throws(VaultError) { try await vault.delete(id) }

    /// Restores a deleted item from the trash of this device; see ``Vault/restore(_:)``.
    ///
    /// Example: "Edit" in docs/app.md.
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

    /// Returns an item and its version; nil when there is none.
    /// - Parameter isSeen: Whether an item that does not open counts as none.
    func present(_ id: ItemID, isSeen: Bool) throws(VaultError) -> (item: PlainItem?, version: ItemVersion?) {
        do throws(VaultError) { return (try item(id), try version(of: id)) } catch {
            guard case .unreadable = error, isSeen else { throw error }
            return (nil, try version(of: id))
        }
    }

    /// Returns an item with its version and its collection; nil when there is none.
    func presentItem(
        _ id: ItemID
    ) throws(VaultError) -> (item: PlainItem, version: ItemVersion, collection: String)? {
        guard let item = try item(id), let content = try stored({ try store.current(id) }) else { return nil }
        return (item, ItemVersion(of: content), content.collection)
    }

    /// Writes an item that was made of the version that is there.
    /// - Returns: nil, with nothing written, when there is another version by now.
    func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion?, inPlaceOf version: ItemVersion?
    ) throws(VaultError) -> ItemID? {
        guard try self.version(of: id) == version else { return nil }
        return try put(item, id, in: collection, over: seen)
    }
}

/// A version of an item, for a later ``VaultCollection/put(_:_:over:)`` to compare.
public struct ItemVersion: Hashable, Sendable {
    private let digest: [UInt8]

    init(of content: ItemContent) { digest = content.digest }
}
