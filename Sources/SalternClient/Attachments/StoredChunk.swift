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

extension SyncEngine {
    /// Returns the next page, without the content of chunks, which only readers of an attachment fetch.
    ///
    /// A page that does not arrive is requested again with fewer changes, also after the end of the process.
    /// - Parameter isLong: True if many changes are expected: in the first listing, and after a page with `more`.
    func page(since cursor: String?, reportsDeletions: Bool, isLong: Bool) async throws -> ChangePage {
        var slowdowns = 0
        while true {
            let former = try store.number(.pageChanges)
            let limit = min(limits.page, former.map { max(Int(clamping: $0), 1) } ?? .max)
            if isLong, limit > 1 { try limitPages(to: limit / 4) }
            switch await fetchPage(since: cursor, limit: limit, reportsDeletions: reportsDeletions) {
            case .success(let page):
                // The connection may be faster now.
                let next = limit * 2 < limits.page ? limit * 2 : nil
                if try store.number(.pageChanges) != next.map({ Int64($0) }) { try limitPages(to: next) }
                return page
            case .failure(let error) where error.isOfSlowLine && limit > 1 && slowdowns < limits.slowdowns:
                slowdowns += 1
                try limitPages(to: limit / 4)
            case .failure(let error):
                if !error.isOfSlowLine, !error.isCancelled { try limitPages(to: former.map { Int(clamping: $0) }) }
                throw error
            }
        }
    }

    /// Stores the number of changes in a page, at least 1; nil for the usual number.
    private func limitPages(to count: Int?) throws {
        try store.set(.pageChanges, count.map { Array(String(max($0, 1)).utf8) })
    }

    /// If the store has chunks, headers are requested first. A run of chunks is used directly. A run of other items is
    /// requested again with its content.
    private func fetchPage(
        since cursor: String?, limit: Int, reportsDeletions: Bool
    ) async -> Result<ChangePage, APIError> {
        let hasChunks: Bool
        do { hasChunks = try store.hasChunks() } catch { hasChunks = false }
        return await Result.of { () throws(APIError) in
            var isMetaOnly = hasChunks
            var limit = limit
            while true {
                let page = try await server.changes(
                    since: cursor, limit: limit, isMetaOnly: isMetaOnly, reportsDeletions: reportsDeletions)
                guard isMetaOnly else { return page }
                let heads = page.changes.prefix { $0.isWholeAsHead }.count
                if heads == page.changes.count { return page }
                isMetaOnly = heads > 0
                limit = heads > 0 ? heads : page.changes.prefix { !$0.isChunk }.count
            }
        }
    }

    /// Records a chunk, whose content is not stored.
    /// - Returns: True for a chunk.
    func isChunkNoted(_ change: ItemState) throws -> Bool {
        // An item that this device stores does not become a chunk because of a server's reply.
        guard change.isChunk, try store.item(change.id) == nil, try store.change(change.id) == nil else { return false }
        if change.deleted {
            try store.loseChunk(change.id)
        } else {
            try store.noteChunk(change.id, change.revision, storedAt: change.updatedAt)
        }
        return true
    }
}

extension ItemState {
    var isChunk: Bool { collection == Attachment.chunkCollection }

    /// True when the header alone is sufficient.
    fileprivate var isWholeAsHead: Bool { deleted || isChunk }
}
