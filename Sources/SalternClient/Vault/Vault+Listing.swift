internal import Cryptography
public import Foundation

/// What a list shows of an item.
public struct ItemSummary: Hashable, Sendable {
    public let id: ItemID
    public let collection: String
    public let title: String?
    /// How long the body is; nil when the item does not open.
    public let byteCount: Int?
    /// Whether the server has not confirmed what is here.
    public let isUnsent: Bool
    /// Why that cannot be sent, when it is longer than the plan allows in an item, as far as that is known here: make it
    /// shorter, or give it up with ``Vault/discardChange(_:)``.
    public let shortage: PlanShortage?
    /// For what was deleted: since when.
    public let removedAt: Date?

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
    /// The items that are here, in the order of their ids.
    /// - Parameter collection: Nil for all of them.
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

    /// What a list would show of one item; nil when there is none.
    public func summary(of id: ItemID) throws(VaultError) -> ItemSummary? {
        let sealer = try open.engine.sealer
        return try stored {
            guard let content = try store.current(id) else { return nil }
            return summary(
                id, content, sealer, isUnsent: try store.change(id) != nil, allowed: try store.number(.itemBytes))
        }
    }

    /// What was deleted and can be restored on this device, the latest first.
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

    /// How many items each collection has here.
    public func collectionCounts() throws(VaultError) -> [String: Int] {
        try stored { try store.collectionCounts() }
    }

    /// - Parameter allowed: How many sealed bytes an item may have; nil as long as nobody knows.
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
    /// Why it cannot be sent; nil when it is not too long.
    func shortage(allowed: Int64) -> PlanShortage? {
        PlanShortage(itemOf: Int64(body.bytes.count + (title?.bytes.count ?? 0)), allowed: allowed)
    }
}
