/// Chunks that were sent from here before any item names them: what can be taken back.
extension Store {
    /// Notes a chunk before it is sent: nobody knows then whether the reply will come.
    func noteDraft(_ chunk: ItemID, of draft: AttachmentDraft) throws {
        guard draft.use != .shared else { return }
        try database.execute(
            "INSERT OR IGNORE INTO draft_chunks (attachment, chunk, resumable) VALUES (?, ?, ?)",
            .blob(draft.id.bytes), .blob(chunk.bytes), .integer(draft.use == .resumable ? 1 : 0))
    }

    func draftChunks(of attachment: ItemID) throws -> [ItemID] {
        try database.rows(
            "SELECT chunk FROM draft_chunks WHERE attachment = ? ORDER BY chunk", .blob(attachment.bytes)
        ) { try Self.id($0, 0) }
    }

    /// Attachments with which nobody can go on.
    func abandonedDrafts() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT attachment FROM draft_chunks WHERE resumable = 0 ORDER BY attachment") {
            try Self.id($0, 0)
        }
    }

    /// Nobody goes on with it any more.
    func abandonDraft(_ attachment: ItemID) throws {
        try database.execute(
            "UPDATE draft_chunks SET resumable = 0 WHERE attachment = ?", .blob(attachment.bytes))
    }

    /// None of its chunks is taken back any more.
    func forgetDraft(_ attachment: ItemID) throws {
        try database.execute("DELETE FROM draft_chunks WHERE attachment = ?", .blob(attachment.bytes))
    }

    func forgetDraftChunk(_ chunk: ItemID) throws {
        try database.execute("DELETE FROM draft_chunks WHERE chunk = ?", .blob(chunk.bytes))
    }

    func chunkCount() throws -> Int64 {
        try database.rows("SELECT count(*) FROM chunks") { $0.integer(0) ?? 0 }.first ?? 0
    }
}
