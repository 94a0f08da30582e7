internal import Foundation

/// Holds deletions back when there are suddenly many, for example of a hostile server or a faulty device. Deletions of
/// the last hour are counted together, over all rounds.
struct DeletionGuard {
    private let store: Store
    private let limit: Int
    private let agreement: DeletionAgreement
    private let moment: Date
    private var total: [String: Int] = [:]
    private var removed: [String: Int] = [:]

    init(_ store: Store, _ limits: SyncLimits, _ agreement: DeletionAgreement, at moment: Date) {
        self.store = store
        limit = limits.deletions
        self.agreement = agreement
        self.moment = moment
    }

    /// Returns the deletions of a page that have to wait. In a collection with waiting deletions, all wait: local
    /// changes must not lower their share.
    mutating func held(among changes: [ItemState]) throws -> Set<ItemID> {
        let isComparing = try store.number(.comparing) != nil
        var deletions: [String: [ItemID]] = [:]
        for change in changes where change.deleted {
            guard let item = try store.item(change.id),
                case .remove = Reconciliation.decide(
                    item: item, change: try store.change(change.id), server: change, isComparing: isComparing)
            else { continue }
            // The item's collection, which is sealed with it. The collection of a tombstone is not authenticated.
            deletions[item.content.collection, default: []].append(change.id)
        }
        return try held(deletions)
    }

    /// Returns those items that have to wait, of several without a version that the lists of managers have. A list can
    /// leave any number of edits out.
    mutating func held(withdrawing items: [(id: ItemID, collection: String)]) throws -> Set<ItemID> {
        try held(Dictionary(grouping: items, by: \.collection).mapValues { $0.map(\.id) })
    }

    private mutating func held(_ deletions: [String: [ItemID]]) throws -> Set<ItemID> {
        var held: Set<ItemID> = []
        for (collection, ids) in deletions where !agreement.includes(collection) {
            let (total, before) = try state(of: collection)
            let count = before + ids.count
            if try store.holdsDeletions(in: collection) || isTooMany(count, of: total) {
                held.formUnion(ids)
            } else {
                try store.noteDeletions(.collection(collection), from: total - before, at: moment)
                removed[collection] = count
            }
        }
        return held
    }

    /// Returns the number of items that the collection had before the deletions of the last hour, and the number of
    /// items that were removed since.
    private mutating func state(of collection: String) throws -> (total: Int, removed: Int) {
        if let total = total[collection], let removed = removed[collection] { return (total, removed) }
        let now = try store.currentIDs(collection).count
        let loss = try store.recentLoss(.collection(collection), to: now, at: moment)
        (total[collection], removed[collection]) = (now + loss, loss)
        return (now + loss, loss)
    }

    private func isTooMany(_ count: Int, of total: Int) -> Bool {
        count > limit || (total >= 10 && count * 3 > total)
    }
}

/// The deletions of other devices that the user has approved.
enum DeletionAgreement: Sendable {
    case none
    case all
    case collections(Set<String>)

    func includes(_ collection: String) -> Bool {
        switch self {
        case .none: false
        case .all: true
        case .collections(let names): names.contains(collection)
        }
    }
}

/// A deletion by another device that waits for the user's approval. In a shared vault also an item whose edit is in no
/// list of the managers that have sealed its author.
public struct HeldDeletion: Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The item's collection.
    public let collection: String
    /// The title; nil for an item without a title, or one that cannot be opened.
    public let title: String?
}

/// A deletion that waits for the user's approval.
struct StoredHeldDeletion {
    var id: ItemID
    /// The revision of the tombstone, or of the version that does not count.
    var revision: Revision
    /// The collection of the item on this device.
    var collection: String
    /// True for a version that the lists of managers do not have.
    var isRefusal = false
}

/// Deletions that wait for approval, and recent deletions.
extension Store {
    // MARK: Tombstones

    /// Keeps an item although the server has a tombstone.
    /// - Parameter isRefusal: True for a version that the lists of managers do not have.
    func hold(_ id: ItemID, _ deletion: Revision, listing: Int64, isRefusal: Bool = false) throws {
        try database.execute(
            "INSERT OR REPLACE INTO held_deletions (id, revision, refused) VALUES (?, ?, ?)", .blob(id.bytes),
            .integer(deletion.number), .integer(isRefusal ? 1 : 0))
        try setListed(id, listing)
    }

    /// Removes held deletions of items that no longer exist, or that exist on the server again. Verdicts decide about
    /// refused versions.
    func forgetSettledHolds() throws {
        try database.execute(
            """
            DELETE FROM held_deletions WHERE refused = 0 AND NOT EXISTS (
                SELECT 1 FROM items i WHERE i.id = held_deletions.id AND i.revision <= held_deletions.revision)
            """)
    }

    func forgetHold(_ id: ItemID) throws {
        try database.execute("DELETE FROM held_deletions WHERE id = ?", .blob(id.bytes))
    }

    /// Returns the waiting deletions, in the order of the ids.
    func heldDeletions() throws -> [StoredHeldDeletion] {
        try database.rows(
            """
            SELECT h.id, h.revision, coalesce(i.collection, c.collection), h.refused FROM \(Self.held)
            WHERE coalesce(i.collection, c.collection) IS NOT NULL ORDER BY h.id
            """
        ) { row in
            guard let revision = row.integer(1), let collection = row.text(2) else {
                throw StoreError.damaged
            }
            return StoredHeldDeletion(
                id: try Self.id(row, 0), revision: Revision(revision), collection: collection,
                isRefusal: row.integer(3) != 0)
        }
    }

    /// The held deletions with their items. A version that does not count can be a change without an item.
    private static let held = """
        held_deletions h LEFT JOIN items i ON i.id = h.id LEFT JOIN changes c ON c.id = h.id AND h.refused <> 0
        """

    /// Returns true when the deletion of an item waits.
    func holdsDeletion(of id: ItemID) throws -> Bool { try isHeld(id, isRefusal: false) }

    /// Returns true when the withdrawal of a version that the lists of managers do not have waits.
    func holdsRefusal(of id: ItemID) throws -> Bool { try isHeld(id, isRefusal: true) }

    private func isHeld(_ id: ItemID, isRefusal: Bool) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM held_deletions WHERE id = ? AND refused = ?", .blob(id.bytes),
            .integer(isRefusal ? 1 : 0), decode: { _ in true }
        ).isEmpty
    }

    /// Returns true when deletions in a collection wait.
    func holdsDeletions(in collection: String) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM \(Self.held) WHERE coalesce(i.collection, c.collection) = ? LIMIT 1", .text(collection),
            decode: { _ in true }
        ).isEmpty
    }

    // MARK: Recent deletions

    /// The period in which deletions are counted together, in seconds.
    static let deletionWindow: Int64 = 3_600

    /// Records that deletions are carried out.
    /// - Parameters:
    ///   - scope: Deletions of one scope are counted together.
    ///   - total: The number of items before them.
    func noteDeletions(_ scope: DeletionScope, from total: Int, at moment: Date) throws {
        try database.execute(
            "INSERT INTO recent_deletions (scope, at, total) VALUES (?, ?, ?)", .text(scope.text),
            .integer(Int64(moment.timeIntervalSince1970)), .integer(Int64(total)))
    }

    /// Returns how many items the deletions of the last hour have removed. Items that were created and deleted within
    /// that hour do not count.
    /// - Parameter total: The present number of items.
    func recentLoss(_ scope: DeletionScope, to total: Int, at moment: Date) throws -> Int {
        let now = Int64(moment.timeIntervalSince1970)
        try database.execute("DELETE FROM recent_deletions WHERE at < ?", .integer(now - Self.deletionWindow))
        let most = try database.rows("SELECT max(total) FROM recent_deletions WHERE scope = ?", .text(scope.text)) {
            $0.integer(0) ?? 0
        }.first
        return max(Int(most ?? 0) - total, 0)
    }

    /// Removes the records of a scope's deletions: the user has approved further ones.
    func forgetDeletions(_ scope: DeletionScope) throws {
        try database.execute("DELETE FROM recent_deletions WHERE scope = ?", .text(scope.text))
    }

    /// Removes the records of all collections' deletions.
    func forgetCollectionDeletions() throws {
        try database.execute(
            "DELETE FROM recent_deletions WHERE substr(scope, 1, ?) = ?",
            .integer(Int64(DeletionScope.collectionPrefix.utf8.count)),
            .text(DeletionScope.collectionPrefix))
    }
}

/// The scopes within which deletions are counted together.
enum DeletionScope {
    /// Deletions of items by other devices.
    case collection(String)
    /// Deletions of files, in one direction.
    case folder(ItemID, DeletionDirection)

    static let collectionPrefix = "collection "

    var text: String {
        switch self {
        case .collection(let name): Self.collectionPrefix + name
        case .folder(let id, let direction): "folder \(id) \(direction.rawValue)"
        }
    }
}

/// The side that loses files.
public enum DeletionDirection: String, Sendable, Hashable, CaseIterable {
    /// Deleted by another device, and still in the folder.
    case here
    /// Missing in the folder, and still in the vault.
    case there
}
