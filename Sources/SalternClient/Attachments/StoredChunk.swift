internal import Foundation

/// A chunk on the server.
struct StoredChunk: Hashable, Sendable {
    var id: ItemID
    var revision: Revision
    /// The time at which the server stored it, by the server's clock.
    var storedAt: Date
}

extension Store {
    func chunk(_ id: ItemID) throws -> StoredChunk? {
        try database.rows(
            "SELECT id, revision, stored_at FROM chunks WHERE id = ?", .blob(id.bytes),
            decode: Self.chunk
        ).first
    }

    func chunks() throws -> [StoredChunk] {
        try database.rows("SELECT id, revision, stored_at FROM chunks ORDER BY id", decode: Self.chunk)
    }

    func hasChunks() throws -> Bool {
        try !database.rows("SELECT 1 FROM chunks LIMIT 1", decode: { _ in true }).isEmpty
    }

    /// Records that the server has a chunk.
    func noteChunk(_ id: ItemID, _ revision: Revision, storedAt: Date) throws {
        try database.execute(
            """
            INSERT INTO chunks (id, revision, stored_at, listing) VALUES (?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, stored_at = excluded.stored_at,
                listing = excluded.listing
            """, .blob(id.bytes), .integer(revision.number), .integer(Int64(storedAt.timeIntervalSince1970)),
            .integer(number(.listing) ?? 0))
    }

    /// Records that the server no longer has a chunk.
    func forgetChunk(_ id: ItemID) throws {
        try database.execute("DELETE FROM chunks WHERE id = ?", .blob(id.bytes))
    }

    /// Records that the server no longer has a chunk, although an item may name it.
    func loseChunk(_ id: ItemID) throws {
        try set(.chunksWhole, nil)
        try set(.chunksLost, 1)
        try forgetChunk(id)
    }

    /// Removes the chunks that a complete listing, which has just ended, did not contain.
    func forgetUnlistedChunks(_ listing: Int64) throws {
        try set(.chunksWhole, nil)
        let lost = try database.execute("DELETE FROM chunks WHERE listing <> ?", .integer(listing))
        if lost > 0 { try set(.chunksLost, 1) }
    }

    /// Calls `body` with all content that may be a manifest: items, the trash, unsent changes and their bases.
    func forEachContent(_ body: (ItemID, ItemContent) throws -> Void) throws {
        for table in ["items", "trash"] {
            for id in try contentIDs(in: table) {
                let item = try table == "items" ? item(id) : trashed(id)
                if let item { try body(id, item.content) }
            }
        }
        for id in try contentIDs(in: "changes") {
            guard let change = try change(id) else { continue }
            if let content = change.content { try body(id, content) }
            guard let base = change.baseContent else { continue }
            let collection = try item(id)?.content.collection ?? change.content?.collection ?? ""
            try body(
                id,
                ItemContent(collection: collection, format: SealedBox.format, title: base.title, body: base.body))
        }
    }

    private func contentIDs(in table: String) throws -> [ItemID] {
        try database.rows("SELECT id FROM \(table) ORDER BY id") { try Self.id($0, 0) }
    }

    private static func chunk(_ row: SQLiteRow) throws -> StoredChunk {
        guard let revision = row.integer(1), let storedAt = row.integer(2) else { throw StoreError.damaged }
        return StoredChunk(
            id: try id(row, 0), revision: Revision(revision), storedAt: Date(timeIntervalSince1970: Double(storedAt)))
    }
}

extension ItemState {
    var isChunk: Bool { collection == Attachment.chunkCollection }
}
