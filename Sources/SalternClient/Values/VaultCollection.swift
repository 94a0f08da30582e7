internal import Cryptography
internal import Foundation

/// The items of one collection as values of one type, encoded as JSON before sealing.
///
/// Values are encoded and decoded in the caller's isolation. `Value` can therefore be a type of the main actor, as in a
/// module whose default isolation is `MainActor`. The functions are then called on the main actor.
public struct VaultCollection<Value: Codable>: Sendable {
    /// The name, which the server sees: `[a-z0-9-]{1,32}`.
    public let name: String
    let vault: Vault
    /// The owner of the items.
    let owner: ItemOwner
    let schema: ItemSchema<Value>

    /// Returns the items that can be read, and the unreadable ones, each with the reason.
    ///
    /// ```swift
    /// let contents = try await notes.contents(sorted: .by(\.text))
    /// print(contents.entries.count, "notes, unreadable:", contents.unreadable.count)
    /// ```
    /// - Parameter order: The order of ``CollectionContents/entries``.
    public func contents(
        sorted order: CollectionOrder<Value> = .byTitle
    ) async throws(VaultError) -> CollectionContents<Value> {
        let (items, sealed) = try await vault.perform(owner) { [name] _, items in try items.items(name) }
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

    /// Returns every item by id, for example for an export. For a list use ``contents(sorted:)``.
    ///
    /// ```swift
    /// for (id, note) in try await notes.all() { print(id, note.text) }
    /// ```
    /// - Throws: ``VaultError/unreadable`` when an item cannot be read.
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
            guard let item = try await item(id) else { return nil }
            do { return try schema.read(item.body).value } catch { throw .unreadable }
        }
    }

    /// Returns one item with its title and its version; nil when there is none. The three are consistent, which
    /// separate calls do not guarantee.
    ///
    /// ```swift
    /// guard let entry = try await notes.entry(id) else { return }
    /// let place = try await notes.put(Note(text: typed), id, over: entry.version)
    /// print(place == id ? "saved" : "saved beside another version")
    /// ```
    /// - Throws: ``VaultError/unreadable`` when the item cannot be read.
    public func entry(_ id: ItemID) async throws(VaultError) -> CollectionEntry<Value>? {
        guard let present = try await vault.perform(owner, { _, items in try items.presentItem(id) }) else {
            return nil
        }
        do {
            let value = try schema.read(present.item.body).value
            return CollectionEntry(id: id, title: present.item.title, value: value, version: present.version)
        } catch {
            throw .unreadable
        }
    }

    /// Returns an item's title; nil when it has none, or there is no item.
    ///
    /// ```swift
    /// print(try await notes.title(of: id) ?? "untitled")
    /// ```
    public func title(of id: ItemID) async throws(VaultError) -> String? { try await item(id)?.title }

    /// Writes an item, a new one unless an id is given. An existing item keeps its title.
    ///
    /// Members of an existing item that `Value` does not contain are kept, at any depth: a later version of the app may
    /// have written them.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Parameter seen: The version that the user has changed; see ``Vault/put(_:_:in:over:)``. With it, an item of
    ///   another type can be replaced.
    /// - Returns: The id under which it was written.
    /// - Throws: ``VaultError/unreadable`` when the existing item cannot be read, because the user has not seen its
    ///   content. ``VaultError/invalidCollection(_:)`` for an invalid name of a collection.
    @discardableResult
    public func put(
        _ value: Value, _ id: ItemID = .random(), over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        try await write(id, over: seen) { try item(value, over: $0, seen) }
    }

    /// Writes an item with a title; nil removes the present title. See ``put(_:_:over:)``.
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

    /// Changes one item: reads it, calls a function with its value, and writes the result. If a sync or another call
    /// changes the item in between, nothing is written, and the function is called again with the later value. So no
    /// change is lost.
    ///
    /// The item keeps its title, its collection and the members that `Value` does not contain. An unchanged value
    /// writes nothing.
    ///
    /// ```swift
    /// try await notes.edit(id) { $0.text += "\nBuy pepper." }
    /// ```
    /// - Parameter change: Changes the value. It can be called several times. An error that it throws leaves the item
    ///   unchanged.
    /// - Returns: The value that is stored now.
    /// - Throws: ``VaultError/notFound`` when there is no such item. ``VaultError/unreadable`` when it cannot be read.
    @discardableResult
    public func edit(
        _ id: ItemID, _ change: (inout Value) throws(VaultError) -> Void
    ) async throws(VaultError) -> Value {
        while true {
            guard let present = try await vault.perform(owner, { _, items in try items.presentItem(id) }) else {
                throw .notFound
            }
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
            let place = try await vault.perform(owner) { _, items in
                try items.put(item, id, in: present.collection, over: nil, inPlaceOf: present.version)
            }
            if place != nil { return value }
        }
    }

    private func write(
        _ id: ItemID, over seen: ItemVersion?, _ make: (PlainItem?) throws -> PlainItem
    ) async throws(VaultError) -> ItemID {
        while true {
            let (before, version) = try await vault.perform(owner) { _, items in
                try items.present(id, isSeen: seen != nil)
            }
            let item: PlainItem
            do { item = try make(before) } catch { throw .unreadable }
            // The value is encoded outside of the vault. If the item was written during that time, it is encoded again.
            let place = try await vault.perform(owner) { [name] _, items in
                try items.put(item, id, in: name, over: seen, inPlaceOf: version)
            }
            if let place { return place }
        }
    }

    /// Returns the item of a value that replaces another one.
    /// - Parameter before: The present item; nil when there is none, or none that can be opened and a version was seen.
    func item(_ value: Value, over before: PlainItem?, _ seen: ItemVersion?) throws -> PlainItem {
        if let before, seen == nil { _ = try schema.read(before.body) }
        return PlainItem(title: before?.title, body: try schema.body(of: value, over: before?.body))
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    ///
    /// Example: "Edit" in docs/app.md.
    public func version(of id: ItemID) async throws(VaultError) -> ItemVersion? {
        try await vault.perform(owner) { _, items in try items.version(of: id) }
    }

    /// Deletes an item; see ``Vault/delete(_:)``.
    ///
    /// Example: "Edit" in docs/app.md.
    public func delete(_ id: ItemID) async throws(VaultError) {
        try await vault.perform(owner) { _, items in try items.delete(id) }
    }

    /// Restores a deleted item from the trash of this device; see ``Vault/restore(_:)``.
    ///
    /// Example: "Edit" in docs/app.md.
    public func restore(_ id: ItemID) async throws(VaultError) {
        try await vault.perform(owner) { _, items in try items.restore(id) }
    }

    private func item(_ id: ItemID) async throws(VaultError) -> PlainItem? {
        try await vault.perform(owner) { _, items in try items.item(id) }
    }
}

/// A version of an item, for comparison by a later ``VaultCollection/put(_:_:over:)``.
public struct ItemVersion: Hashable, Sendable {
    private let digest: [UInt8]

    init(of content: ItemContent) { digest = content.digest }
}

extension VaultCollection {
    /// Returns the contents now, and again after each change in the collection and each time the vault is unlocked.
    /// While it is locked the sequence pauses. A slow reader receives only the last contents. The sequence ends after a
    /// sign-out.
    ///
    /// The vault stays open as long as the sequence is read. Values are decoded in the reader's isolation, so in a
    /// view's task on the main actor.
    ///
    /// ```swift
    /// for await contents in notes.observe(sorted: .by(\.text)) {
    ///     show(contents.entries)
    /// }
    /// ```
    /// - Parameter order: The order of ``CollectionContents/entries``.
    public func observe(sorted order: CollectionOrder<Value> = .byTitle) -> CollectionUpdates<Value> {
        CollectionUpdates(collection: self, order: order)
    }
}

/// The contents of a collection, now and after each change: see ``VaultCollection/observe(sorted:)``.
public struct CollectionUpdates<Value: Codable>: AsyncSequence {
    public typealias Element = CollectionContents<Value>

    let collection: VaultCollection<Value>
    let order: CollectionOrder<Value>

    /// Iterates over the contents.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let collection: VaultCollection<Value>
        fileprivate let order: CollectionOrder<Value>
        private var nudges: AsyncStream<Void>?

        fileprivate init(_ updates: CollectionUpdates<Value>) {
            collection = updates.collection
            order = updates.order
        }

        /// Returns the next contents; nil after a sign-out or when the task was cancelled.
        public mutating func next() async -> CollectionContents<Value>? {
            // The subscription begins before the first contents are read, so that no later change is missed.
            let nudges: AsyncStream<Void>
            if let begun = self.nudges {
                nudges = begun
            } else {
                nudges = await collection.vault.nudges(in: collection.name, of: collection.owner)
                self.nudges = nudges
            }
            while await Self.next(of: nudges) != nil {
                // While the vault is locked there are no contents until it is unlocked.
                if let contents = try? await collection.contents(sorted: order) { return contents }
            }
            return nil
        }

        /// Returns the next element. All iterators of such a stream take from the same elements.
        private static func next(of nudges: AsyncStream<Void>) async -> Void? {
            var iterator = nudges.makeAsyncIterator()
            return await iterator.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

/// The names of collections on the server: `[a-z0-9-]{1,32}`.
public enum CollectionName {
    /// Returns true for a valid name of a collection of items.
    public static func isValid(_ name: String) -> Bool {
        (1...32).contains(name.utf8.count) && name != Attachment.chunkCollection
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
            }
    }
    /// Returns true for a collection of the kit itself, which lists of items omit.
    static func isHidden(_ name: String) -> Bool {
        name == MembershipRecord.collection || name == SharedVaultService.nameCollection
    }
}
