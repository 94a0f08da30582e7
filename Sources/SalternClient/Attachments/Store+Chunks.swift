internal import Foundation

/// A chunk that the server has.
struct StoredChunk: Hashable, Sendable {
    var id: ItemID
    var revision: Revision
    /// When the server got it, as it says.
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

    /// Notes that the server has it.
    func noteChunk(_ id: ItemID, _ revision: Revision, storedAt: Date) throws {
        try database.execute(
            """
            INSERT INTO chunks (id, revision, stored_at, listing) VALUES (?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, stored_at = excluded.stored_at,
                listing = excluded.listing
            """, .blob(id.bytes), .integer(revision.number), .integer(Int64(storedAt.timeIntervalSince1970)),
            .integer(number(.listing) ?? 0))
    }

    /// Notes that the server has it no more.
    func forgetChunk(_ id: ItemID) throws {
        try database.execute("DELETE FROM chunks WHERE id = ?", .blob(id.bytes))
    }

    /// Notes that the server has it no more, though something may name it.
    func loseChunk(_ id: ItemID) throws {
        try set(.chunksWhole, nil)
        try set(.chunksLost, 1)
        try forgetChunk(id)
    }

    /// The listing of everything that has just ended did not have them.
    func forgetUnlistedChunks(_ listing: Int64) throws {
        try set(.chunksWhole, nil)
        let lost = try database.execute("DELETE FROM chunks WHERE listing <> ?", .integer(listing))
        if lost > 0 { try set(.chunksLost, 1) }
    }

    /// Calls `body` with everything that may hold a manifest: what the server has, what is kept in the trash, what was
    /// changed here and what it was changed from.
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
