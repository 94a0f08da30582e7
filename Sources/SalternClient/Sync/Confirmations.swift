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
    fileprivate func hasConfirmations() throws -> Bool {
        try !database.rows("SELECT 1 FROM confirmations LIMIT 1", decode: { _ in true }).isEmpty
    }

    /// Removes and returns the acknowledged change of an item.
    fileprivate func takeConfirmation(of id: ItemID) throws -> Confirmation? {
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

/// A listing contradicts acknowledgements of the server.
struct BrokenConfirmations: Error {
    var confirmations: [Confirmation]
}

/// Comparison of listings with acknowledged changes. The next listing must contain each item with that revision or a
/// later one.
extension SyncEngine {
    /// Compares a page with the acknowledged changes of its items, and removes their records.
    /// - Throws: ``BrokenConfirmations``.
    func checkConfirmations(against changes: [ItemState]) throws {
        guard try store.hasConfirmations() else { return }
        let broken = try changes.compactMap { change in
            try store.takeConfirmation(of: change.id).flatMap { change.shows($0) ? nil : $0 }
        }
        if !broken.isEmpty { throw BrokenConfirmations(confirmations: broken) }
    }

    /// Checks at the end of a listing that it contained all earlier acknowledged changes.
    ///
    /// A complete listing can lack an item that another device has deleted long ago; ``Store/unlisted(_:)`` returns
    /// those.
    /// - Throws: ``BrokenConfirmations``.
    func endConfirmations() throws {
        guard try store.hasConfirmations() else { return }
        let hidden = try store.confirmations(since: store.number(.listing) ?? 0)
        if !hidden.isEmpty { throw BrokenConfirmations(confirmations: hidden) }
        try store.forgetConfirmations()
    }

    /// Revokes acknowledgements: the changes are unsent again. A complete listing starts, because the server may have
    /// hidden more.
    func revoke(_ confirmations: [Confirmation]) throws {
        try store.transaction {
            for confirmation in confirmations { try revoke(confirmation) }
            try store.beginListing()
        }
    }

    private func revoke(_ confirmation: Confirmation) throws {
        let id = confirmation.item
        _ = try store.takeConfirmation(of: id)
        if var later = try store.change(id) {
            guard later.content != nil, confirmation.digest != nil, later.base == confirmation.revision else { return }
            later.base = confirmation.base
            return try store.write(later, isSame: true)
        }
        let item = try store.item(id)
        var change = LocalChange(
            id: id, sequence: try store.nextSequence(), base: confirmation.base, content: item?.content,
            edit: item?.edit ?? 0)
        if confirmation.digest == nil {
            guard item == nil else { return }
            change.edit = try store.tombstone(id)?.edit ?? 0
        } else {
            guard item?.revision == confirmation.revision else { return }
        }
        change.sent = change.sending
        try store.write(change)
    }
}

extension ItemState {
    /// Returns true when this is the acknowledged state, or a later one.
    fileprivate func shows(_ confirmation: Confirmation) -> Bool {
        // An edited item does not become a chunk, and an item that is not deleted has content.
        guard revision >= confirmation.revision, deleted || !isChunk && content != nil else { return false }
        return revision > confirmation.revision || content?.digest == confirmation.digest
    }
}
