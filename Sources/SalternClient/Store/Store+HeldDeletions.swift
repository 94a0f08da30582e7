internal import Foundation

/// A deletion that waits for agreement.
struct StoredHeldDeletion {
    var id: ItemID
    /// That of the tombstone.
    var revision: Revision
    /// That of the item here.
    var collection: String
}

/// Deletions that wait for agreement, and those that were carried out a short while ago.
extension Store {
    // MARK: Tombstones

    /// Keeps an item of which the server has a tombstone.
    func hold(_ id: ItemID, _ deletion: Revision, listing: Int64) throws {
        try database.execute(
            "INSERT OR REPLACE INTO held_deletions (id, revision) VALUES (?, ?)", .blob(id.bytes),
            .integer(deletion.number))
        try setListed(id, listing)
    }

    /// Forgets deletions of items that are gone, or that the server has again.
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

    /// Returns the deletions that wait, in the order of the ids.
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

    /// Returns whether deletions in a collection wait.
    func holdsDeletions(in collection: String) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM held_deletions h JOIN items i ON i.id = h.id WHERE i.collection = ? LIMIT 1",
            .text(collection), decode: { _ in true }
        ).isEmpty
    }

    // MARK: Recent deletions

    /// How long deletions count together, in seconds.
    static let deletionWindow: Int64 = 3_600

    /// Notes that deletions are carried out.
    /// - Parameters:
    ///   - scope: Those of one scope count together.
    ///   - total: How many items there are before them.
    func noteDeletions(_ scope: DeletionScope, from total: Int, at moment: Date) throws {
        try database.execute(
            "INSERT INTO recent_deletions (scope, at, total) VALUES (?, ?, ?)", .text(scope.text),
            .integer(Int64(moment.timeIntervalSince1970)), .integer(Int64(total)))
    }

    /// Returns how many items fewer there are than before the deletions of the last hour. What was created in that hour and
    /// deleted again does not count.
    /// - Parameter total: How many there are now.
    func recentLoss(_ scope: DeletionScope, to total: Int, at moment: Date) throws -> Int {
        let now = Int64(moment.timeIntervalSince1970)
        try database.execute("DELETE FROM recent_deletions WHERE at < ?", .integer(now - Self.deletionWindow))
        let most = try database.rows("SELECT max(total) FROM recent_deletions WHERE scope = ?", .text(scope.text)) {
            $0.integer(0) ?? 0
        }.first
        return max(Int(most ?? 0) - total, 0)
    }

    /// Forgets the deletions of a scope: a person has agreed to more.
    func forgetDeletions(_ scope: DeletionScope) throws {
        try database.execute("DELETE FROM recent_deletions WHERE scope = ?", .text(scope.text))
    }

    /// Forgets the deletions of all collections.
    func forgetCollectionDeletions() throws {
        try database.execute(
            "DELETE FROM recent_deletions WHERE substr(scope, 1, ?) = ?",
            .integer(Int64(DeletionScope.collectionPrefix.utf8.count)),
            .text(DeletionScope.collectionPrefix))
    }
}

/// Which deletions count together.
enum DeletionScope {
    /// Of items that were deleted elsewhere.
    case collection(String)
    /// Of files, in one direction.
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
    /// Deleted elsewhere, and still in the folder.
    case here
    /// Missing in the folder, and still in the vault.
    case there
}
