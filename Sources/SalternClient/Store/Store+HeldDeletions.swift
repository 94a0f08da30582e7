internal import Foundation

/// A deletion that waits for the user's approval.
struct StoredHeldDeletion {
    var id: ItemID
    /// The revision of the tombstone.
    var revision: Revision
    /// The collection of the item on this device.
    var collection: String
}

/// Deletions that wait for approval, and recent deletions.
extension Store {
    // MARK: Tombstones

    /// Keeps an item although the server has a tombstone.
    func hold(_ id: ItemID, _ deletion: Revision, listing: Int64) throws {
        try database.execute(
            "INSERT OR REPLACE INTO held_deletions (id, revision) VALUES (?, ?)", .blob(id.bytes),
            .integer(deletion.number))
        try setListed(id, listing)
    }

    /// Removes held deletions of items that no longer exist, or that exist on the server again.
    func forgetSettledHolds() throws {
        try database.execute(
            """
            DELETE FROM held_deletions WHERE NOT EXISTS (
                SELECT 1 FROM items i WHERE i.id = held_deletions.id AND i.revision <= held_deletions.revision)
            """)
    }

    func forgetHold(_ id: ItemID) throws {
        try database.execute("DELETE FROM held_deletions WHERE id = ?", .blob(id.bytes))
    }

    /// Returns the waiting deletions, in the order of the ids.
    func heldDeletions() throws -> [StoredHeldDeletion] {
        try database.rows(
            "SELECT h.id, h.revision, i.collection FROM held_deletions h JOIN items i ON i.id = h.id ORDER BY h.id"
        ) { row in
            guard let revision = row.integer(1), let collection = row.text(2) else {
                throw StoreError.damaged
            }
            return StoredHeldDeletion(
                id: try Self.id(row, 0), revision: Revision(revision), collection: collection)
        }
    }

    /// Returns true when the deletion of an item waits.
    func holdsDeletion(of id: ItemID) throws -> Bool {
        try !database.rows("SELECT 1 FROM held_deletions WHERE id = ?", .blob(id.bytes), decode: { _ in true }).isEmpty
    }

    /// Returns true when deletions in a collection wait.
    func holdsDeletions(in collection: String) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM held_deletions h JOIN items i ON i.id = h.id WHERE i.collection = ? LIMIT 1",
            .text(collection), decode: { _ in true }
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
