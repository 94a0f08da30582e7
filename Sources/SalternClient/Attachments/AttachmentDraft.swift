/// An attachment that is being sent and that no item names yet.
struct AttachmentDraft: Sendable {
    let id: ItemID
    /// False when the id was generated for one call, so that no later call can continue it.
    let isResumable: Bool
    /// The parts of it that are already in items; nil when they have not been determined.
    let before: Before?
    /// True when the device keeps the content, until it is sent or as a copy. False when one of its files has the
    /// content.
    var keepsContent = true
    /// True when copies are kept. Content above the limit of all copies has none.
    var keepsCopies = true

    /// The version that an attachment replaces.
    struct Before: Sendable {
        /// Its chunks that present items name. No device takes these back or sweeps them.
        var named: Set<ItemID> = []
        /// The sealed bytes of the manifest that is replaced on the server; nil for none.
        var manifestByteCount: Int64?
    }

    /// - Parameter id: Nil to generate one.
    init(_ id: ItemID?) {
        self.id = id ?? .random()
        isResumable = id != nil
        before = id == nil ? Before() : nil
    }

    init(_ id: ItemID, before: Before) {
        self.id = id
        isResumable = true
        self.before = before
    }
}

/// A chunk that this device sent under a draft.
struct DraftChunk: Hashable, Sendable {
    let id: ItemID
    /// The revision at which this device created it; nil while the outcome is uncertain.
    let revision: Revision?
    /// The concatenated digests of all sent contents (``ItemContent/digest``). Each sealing has other bytes.
    let sent: [UInt8]

    /// Returns true when this device sent this content.
    func hasSent(_ content: ItemContent) -> Bool {
        let digest = content.digest
        return stride(from: 0, to: sent.count, by: digest.count).contains { sent[$0...].starts(with: digest) }
    }
}

/// The attachments that calls are sending now.
final class RunningAttachments {
    /// The state of an attachment while calls send it.
    private struct Attaching {
        var callCount = 0
        /// The parts of it that are already in items, after they have been determined.
        var before: AttachmentDraft.Before?
    }

    private let scope: ItemScope
    private let store: Store
    private let index: ManifestIndex
    private var attaching: [ItemID: Attaching] = [:]

    init(_ scope: ItemScope, _ index: ManifestIndex) {
        self.scope = scope
        self.index = index
        store = scope.store
    }

    var isEmpty: Bool { attaching.isEmpty }

    func contains(_ id: ItemID) -> Bool { attaching[id] != nil }

    func begin(_ draft: AttachmentDraft) throws(VaultError) {
        if draft.isResumable { try scope.stored { try store.resumeDraft(draft.id) } }
        attaching[draft.id, default: Attaching()].callCount += 1
        // The result of another call can be outdated.
        attaching[draft.id]?.before = nil
    }

    func end(_ draft: AttachmentDraft) {
        attaching[draft.id]?.callCount -= 1
        if attaching[draft.id]?.callCount == 0 { attaching[draft.id] = nil }
    }

    /// Returns the parts of an attachment that items on this device have. It is called when the server has a chunk
    /// already, or when the room is checked.
    func before(_ draft: AttachmentDraft) throws(VaultError) -> AttachmentDraft.Before {
        if let known = draft.before ?? attaching[draft.id]?.before { return known }
        var before = AttachmentDraft.Before()
        if try scope.stored({ try !store.hasChunks() }) { return before }
        _ = try index.forEachManifest(of: draft.id, scope.sealer) { id, content, known in
            let isOnServer = try store.item(id)?.content == content
            if isOnServer { before.manifestByteCount = Int64(content.body.bytes.count) }
            // A chunk that only the trash of this device names may be swept by another device at any time.
            guard try isOnServer || store.current(id) == content else { return }
            before.named.formUnion(known.chunks)
        }
        attaching[draft.id]?.before = before
        return before
    }
}

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

    fileprivate func draftChunks(of attachment: ItemID) throws -> [DraftChunk] {
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
    fileprivate func resumeDraft(_ attachment: ItemID) throws {
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
