/// An edit or a deletion that the server has acknowledged, and that no listing has contained since.
struct Confirmation: Hashable, Sendable {
    var item: ItemID
    /// The revision that the server has assigned to it.
    var revision: Revision
    /// The previous revision on the server; nil when it had none.
    var base: Revision?
    /// The digest of the acknowledged content; nil for a deletion.
    var digest: [UInt8]?
}

/// Acknowledged changes, until a listing contains them.
extension Store {
    /// Records that the server has acknowledged a change. A deletion whose tombstone is already in the store is not
    /// recorded, because no listing contains it again.
    ///
    /// Of edits that follow each other before a listing ends, the first one's base counts.
    func noteConfirmation(of change: LocalChange, at revision: Revision, listing: Int64) throws {
        try database.execute(
            """
            INSERT INTO confirmations (item, revision, base, digest, listing)
            SELECT ?1, ?2, ?3, ?4, ?5
            WHERE ?4 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM held_deletions WHERE id = ?1 AND revision = ?2)
            ON CONFLICT (item) DO UPDATE SET
                base = CASE WHEN digest IS NULL OR excluded.digest IS NULL THEN excluded.base ELSE base END,
                revision = excluded.revision, digest = excluded.digest, listing = excluded.listing
            """, .blob(change.id.bytes), .integer(revision.number), .optional(change.base?.number),
            .optional(change.content?.digest), .integer(listing))
    }

    /// Returns true when acknowledged changes are still missing in listings.
    func hasConfirmations() throws -> Bool {
        try !database.rows("SELECT 1 FROM confirmations LIMIT 1", decode: { _ in true }).isEmpty
    }

    /// Removes and returns the acknowledged change of an item.
    func takeConfirmation(of id: ItemID) throws -> Confirmation? {
        try database.rows(
            "DELETE FROM confirmations WHERE item = ? RETURNING item, revision, base, digest", .blob(id.bytes),
            decode: Self.confirmation
        ).first
    }

    /// Returns the acknowledged changes after which no other complete listing has begun.
    func confirmations(since listing: Int64) throws -> [Confirmation] {
        try database.rows(
            "SELECT item, revision, base, digest FROM confirmations WHERE listing = ?", .integer(listing),
            decode: Self.confirmation)
    }

    func forgetConfirmations() throws { try database.execute("DELETE FROM confirmations") }

    private static func confirmation(_ row: SQLiteRow) throws -> Confirmation {
        guard let revision = row.integer(1) else { throw StoreError.damaged }
        return Confirmation(
            item: try id(row, 0), revision: Revision(revision), base: row.integer(2).map(Revision.init),
            digest: row.blob(3))
    }
}
