public import Foundation

/// An item in a list, without its content.
public struct ItemSummary: Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The item's collection.
    public let collection: String
    /// The item's title; nil when it has none or the item cannot be opened.
    public let title: String?
    /// The length of the body, in bytes; nil when the item cannot be opened.
    public let byteCount: Int?
    /// True when the server has not confirmed the version of this device.
    public let isUnsent: Bool
    /// The limit of the plan that prevents sending, according to the last known plan; nil otherwise. Shorten the item,
    /// or call ``Vault/discardChange(_:)``.
    public let shortage: PlanShortage?
    /// The time of the deletion, for a deleted item.
    public let removedAt: Date?

    /// Creates a summary, for previews and tests of an app.
    public init(
        id: ItemID, collection: String, title: String?, byteCount: Int?, isUnsent: Bool,
        shortage: PlanShortage? = nil, removedAt: Date? = nil
    ) {
        self.id = id
        self.collection = collection
        self.title = title
        self.byteCount = byteCount
        self.isUnsent = isUnsent
        self.shortage = shortage
        self.removedAt = removedAt
    }
}

extension Vault {
    /// Returns the items on this device, in the order of their ids.
    ///
    /// ```swift
    /// for item in try await vault.items(in: "notes") { print(item.title ?? "untitled", item.isUnsent) }
    /// ```
    /// - Parameter collection: Nil for all collections.
    public func items(in collection: String? = nil) throws(VaultError) -> [ItemSummary] {
        try items.items(in: collection)
    }

    /// Returns the summary of one item; nil when there is none.
    ///
    /// ```swift
    /// if let summary = try await vault.summary(of: id) { print(summary.title ?? "untitled") }
    /// ```
    public func summary(of id: ItemID) throws(VaultError) -> ItemSummary? {
        try items.summary(of: id)
    }

    /// Returns the deleted items that this device can restore, the latest first.
    ///
    /// ```swift
    /// if let last = try await vault.deletedItems().first { try await vault.restore(last.id) }
    /// ```
    public func deletedItems() throws(VaultError) -> [ItemSummary] {
        try items.deletedItems()
    }

    /// Returns the number of items of each collection on this device.
    ///
    /// ```swift
    /// for (collection, count) in try await vault.collectionCounts() { print(collection, count) }
    /// ```
    public func collectionCounts() throws(VaultError) -> [String: Int] {
        try stored { try store.collectionCounts() }.filter { !CollectionName.isHidden($0.key) }
    }

    // MARK: Unsent changes

    /// Returns the number of changes that the server has not confirmed.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    public func unsentCount() throws(VaultError) -> Int { try stored { try store.changeCount() } }

    /// Returns true when deletions wait for the user's approval. They are of other devices (``agreeToDeletions(in:)``),
    /// or of files according to the last round of a folder (``FolderSettings/allowsDeletions``).
    ///
    /// ```swift
    /// if try await vault.areDeletionsHeld() { print(try await vault.heldDeletions().count) }
    /// ```
    public func areDeletionsHeld() throws(VaultError) -> Bool { try stored { try store.holdsDeletions() } }

    /// Returns the items whose present version the server does not have, in the order of sending, without deletions.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems(limit: 20) { print(item.title ?? "untitled", item.shortage ?? "waits") }
    /// ```
    /// - Parameter limit: The maximum number of items to return.
    public func unsentItems(limit: Int = .max) throws(VaultError) -> [ItemSummary] {
        try items.unsentItems(limit: limit)
    }

    /// Discards the unsent change of an item. The item returns to its last received state of the server, if there is
    /// one. The discarded content goes to the trash of this device. If the item exists, the content gets another id
    /// there.
    ///
    /// Content that was sent without a confirmation may be on the server. The next ``sync()`` then fetches it.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems() where item.shortage != nil { try await vault.discardChange(item.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no unsent change.
    public func discardChange(_ id: ItemID) throws(VaultError) {
        try items.discardChange(id)
    }

    /// The maximum number of sealed bytes of an item that any plan and any batch allow.
    package static let longestItemByteCount = Int(PlanRoom.itemByteLimit)

    /// Rejects a body that is too long, before it is read.
    package func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        try await plan.refuseTooLong(bodyOf: byteCount)
    }
}
