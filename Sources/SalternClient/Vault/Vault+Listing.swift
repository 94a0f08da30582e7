internal import Cryptography
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
        let sealer = try open.engine.sealer
        var items: [ItemSummary] = []
        try stored {
            let allowed = try store.number(.itemBytes)
            try store.forEachCurrent(in: collection) { id, content, isUnsent in
                items.append(summary(id, content, sealer, isUnsent: isUnsent, allowed: allowed))
            }
        }
        return items
    }

    /// Returns the summary of one item; nil when there is none.
    ///
    /// ```swift
    /// if let summary = try await vault.summary(of: id) { print(summary.title ?? "untitled") }
    /// ```
    public func summary(of id: ItemID) throws(VaultError) -> ItemSummary? {
        let sealer = try open.engine.sealer
        return try stored {
            guard let content = try store.current(id) else { return nil }
            return summary(
                id, content, sealer, isUnsent: try store.change(id) != nil, allowed: try store.number(.itemBytes))
        }
    }

    /// Returns the deleted items that this device can restore, the latest first.
    ///
    /// ```swift
    /// if let last = try await vault.deletedItems().first { try await vault.restore(last.id) }
    /// ```
    public func deletedItems() throws(VaultError) -> [ItemSummary] {
        let sealer = try open.engine.sealer
        var items: [ItemSummary] = []
        try stored {
            try store.forEachTrashed { id, content, isUnsent, removedAt in
                items.append(
                    summary(
                        id, content, sealer, isUnsent: isUnsent,
                        removedAt: Date(timeIntervalSince1970: TimeInterval(removedAt))))
            }
        }
        return items
    }

    /// Returns the number of items of each collection on this device.
    ///
    /// ```swift
    /// for (collection, count) in try await vault.collectionCounts() { print(collection, count) }
    /// ```
    public func collectionCounts() throws(VaultError) -> [String: Int] {
        try stored { try store.collectionCounts() }
    }

    /// - Parameter allowed: The limit of an item, in sealed bytes; nil while it is unknown.
    private func summary(
        _ id: ItemID, _ content: ItemContent, _ sealer: Sealer, isUnsent: Bool, allowed: Int64? = nil,
        removedAt: Date? = nil
    ) -> ItemSummary {
        let opened = try? sealer.open(content, id).item
        return ItemSummary(
            id: id, collection: content.collection, title: opened?.title, byteCount: opened?.body.count,
            isUnsent: isUnsent, shortage: isUnsent ? allowed.flatMap { content.shortage(allowed: $0) } : nil,
            removedAt: removedAt)
    }
}

extension ItemContent {
    /// Returns the exceeded limit; nil when the item is not too long.
    func shortage(allowed: Int64) -> PlanShortage? {
        PlanShortage(itemOf: Int64(body.bytes.count + (title?.bytes.count ?? 0)), allowed: allowed)
    }
}
