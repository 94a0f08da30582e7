extension SyncEngine {
    /// The next page, without the content of chunks: only who reads an attachment fetches that.
    ///
    /// Where there are chunks, heads are asked for first. A run of chunks is taken as it is, a run of other things is asked
    /// for again with its content.
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

    /// - Returns: Whether it is a chunk, which is noted and not kept.
    func isChunkNoted(_ change: ItemState) throws -> Bool {
        // An item that is known does not become a chunk because the server says so.
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

    /// Whether nothing is missing where only the head was asked for.
    fileprivate var isWholeAsHead: Bool { deleted || isChunk }
}
