/// Chunks that this device created before any item names them. They can be taken back.
extension Store {
    /// Records that a chunk is about to be sent. Its outcome is uncertain until the reply arrives.
    func noteSending(_ chunk: ItemID, _ content: ItemContent, of draft: AttachmentDraft) throws {
        try database.execute(
            """
            INSERT INTO draft_chunks (attachment, chunk, resumable, sent) VALUES (?, ?, ?, ?)
            ON CONFLICT (attachment, chunk) DO UPDATE SET sent = sent || excluded.sent, revision = NULL
            """, .blob(draft.id.bytes), .blob(chunk.bytes), .integer(draft.isResumable ? 1 : 0),
            .blob(content.digest))
    }

    /// Records that this device created a chunk.
    func noteCreated(_ chunk: ItemID, _ revision: Revision) throws {
        try database.execute(
            "UPDATE draft_chunks SET revision = ? WHERE chunk = ?", .integer(revision.number), .blob(chunk.bytes))
    }

    func draftChunk(_ chunk: ItemID) throws -> DraftChunk? {
        try draftChunks("chunk = ?", .blob(chunk.bytes)).first
    }

    func draftChunks(of attachment: ItemID) throws -> [DraftChunk] {
        try draftChunks("attachment = ?", .blob(attachment.bytes))
    }

    /// Returns the attachments that no call can continue, or not with all of their chunks.
    func abandonedDrafts() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT attachment FROM draft_chunks WHERE resumable = 0 ORDER BY attachment") {
            try Self.id($0, 0)
        }
    }

    func abandonedChunks(of attachment: ItemID) throws -> [DraftChunk] {
        try draftChunks("attachment = ? AND resumable = 0", .blob(attachment.bytes))
    }

    /// Marks an attachment as abandoned, except the chunks in `kept`, which become resumable.
    func abandonDraft(_ attachment: ItemID, except kept: [ItemID] = []) throws {
        let kept = Set(kept)
        for chunk in try draftChunks(of: attachment) {
            try database.execute(
                "UPDATE draft_chunks SET resumable = ? WHERE chunk = ?", .integer(kept.contains(chunk.id) ? 1 : 0),
                .blob(chunk.id.bytes))
        }
    }

    /// Marks an attachment as resumable, even after it was abandoned.
    func resumeDraft(_ attachment: ItemID) throws {
        try database.execute(
            "UPDATE draft_chunks SET resumable = 1 WHERE attachment = ?", .blob(attachment.bytes))
    }

    /// Removes the draft. Its chunks can then no longer be taken back.
    func forgetDraft(_ attachment: ItemID) throws {
        try database.execute("DELETE FROM draft_chunks WHERE attachment = ?", .blob(attachment.bytes))
    }

    /// Removes from the drafts the chunks of a manifest that was put in an item. Other devices may name them from then
    /// on.
    func forgetDraftChunks(of attachment: Attachment) throws {
        if attachment.chunks.isEmpty { return }
        let named = Set(attachment.chunks)
        for chunk in try draftChunks(of: attachment.id) where named.contains(chunk.id) {
            try forgetDraftChunk(chunk.id)
        }
    }

    func forgetDraftChunk(_ chunk: ItemID) throws {
        try database.execute("DELETE FROM draft_chunks WHERE chunk = ?", .blob(chunk.bytes))
    }

    func chunkCount() throws -> Int64 {
        try database.rows("SELECT count(*) FROM chunks") { $0.integer(0) ?? 0 }.first ?? 0
    }

    private func draftChunks(_ condition: String, _ value: SQLiteValue) throws -> [DraftChunk] {
        try database.rows("SELECT chunk, revision, sent FROM draft_chunks WHERE \(condition) ORDER BY chunk", value) {
            row in
            DraftChunk(id: try Self.id(row, 0), revision: row.integer(1).map(Revision.init), sent: row.blob(2) ?? [])
        }
    }
}
