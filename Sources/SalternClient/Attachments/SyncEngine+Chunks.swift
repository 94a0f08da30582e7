extension SyncEngine {
    /// Returns the next page, without the content of chunks, which only readers of an attachment fetch.
    ///
    /// If the store has chunks, headers are requested first. A run of chunks is used directly. A run of other items is
    /// requested again with its content.
    func page(since cursor: String?, reportsDeletions: Bool) async -> Result<ChangePage, APIError> {
        let hasChunks: Bool
        do { hasChunks = try store.hasChunks() } catch { hasChunks = false }
        return await Result.of { () throws(APIError) in
            var isMetaOnly = hasChunks
            var limit = limits.page
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
