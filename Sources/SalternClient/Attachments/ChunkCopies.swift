internal import Cryptography

/// Content of attachments that is readable without network: waiting content, and copies of content that was attached or
/// read on this device.
final class ChunkCopies {
    private let scope: ItemScope
    private let store: Store
    /// The limit of all copies, in sealed bytes.
    let limit: Int64

    init(_ scope: ItemScope) {
        self.scope = scope
        store = scope.store
        limit = scope.settings.attachments.copiedByteLimit
    }

    /// Returns the sealed bytes of attachments' chunks on this device.
    func usage() throws(VaultError) -> AttachmentUsage {
        try scope.stored {
            AttachmentUsage(
                waitingByteCount: try store.waitingByteCount(), copiedByteCount: try store.copiedByteCount())
        }
    }

    /// Removes the copies of content that the server has.
    func removeAll() throws(VaultError) {
        try scope.stored { try store.removeCopies(downTo: 0) }
    }

    /// Returns a piece from this device; nil when it is not stored here.
    func piece(_ index: Int, of attachment: Attachment) throws(VaultError) -> SecureBytes? {
        let sealer = try scope.sealer
        // While another process uses the store, its copies are not read.
        if store.isLent { return nil }
        let id = attachment.chunks[index]
        guard let content = try scope.stored({ try store.chunkContent(id) }) else { return nil }
        guard let opened = try? sealer.openChunk(content, id), isPiece(opened, index, of: attachment, sealer) else {
            // A damaged copy is fetched again.
            try scope.stored { if try !store.isWaiting(id) { try store.forgetContent(id) } }
            return nil
        }
        try? store.noteUse(id)
        return opened
    }

    /// Returns true when content is the piece that a manifest names. The name is derived from the content.
    func isPiece(_ content: SecureBytes, _ index: Int, of attachment: Attachment, _ sealer: any ItemSealing) -> Bool {
        content.count == attachment.byteCount(ofPiece: index)
            && sealer.isChunkID(attachment.chunks[index], attachment.id, index, content)
    }

    /// Stores a copy of a chunk if its whole attachment is within the limit. A full disk does not affect the reader.
    func keep(_ id: ItemID, _ content: ItemContent, of byteCount: Int64) {
        guard byteCount <= limit, !store.isLent else { return }
        try? store.transaction { try store.keepCopy(id, content.body.bytes, limit: limit) }
    }
}

/// A chunk that waits on this device to be sent.
struct WaitingChunk: Hashable, Sendable {
    let id: ItemID
    let attachment: ItemID
    /// The length of the sealed content.
    let byteCount: Int64
}

/// Sealed content of chunks that wait to be sent, and copies of chunks on the server.
extension Store {
    /// Returns the sealed content of a chunk, in the form in which it is sent; nil when this device does not have it.
    func chunkContent(_ id: ItemID) throws -> ItemContent? {
        try database.rows("SELECT body FROM chunk_contents WHERE id = ?", .blob(id.bytes)) { row in
            ItemContent(
                collection: Attachment.chunkCollection, format: SealedBox.format, body: row.blob(0) ?? [])
        }.first
    }

    // MARK: Waiting

    func waitingByteCount() throws -> Int64 {
        try sum("waiting IS NOT NULL")
    }

    func hasWaitingChunks() throws -> Bool {
        try !database.rows("SELECT 1 FROM chunk_contents WHERE waiting IS NOT NULL LIMIT 1", decode: { _ in true })
            .isEmpty
    }

    func isWaiting(_ id: ItemID) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM chunk_contents WHERE id = ? AND waiting IS NOT NULL", .blob(id.bytes),
            decode: { _ in true }
        ).isEmpty
    }

    /// Returns the waiting chunks, in the order in which they were added.
    func waitingChunks() throws -> [WaitingChunk] {
        try database.rows(
            "SELECT id, waiting, byte_count FROM chunk_contents WHERE waiting IS NOT NULL ORDER BY used"
        ) { WaitingChunk(id: try Self.id($0, 0), attachment: try Self.id($0, 1), byteCount: $0.integer(2) ?? 0) }
    }

    /// Stores content until it is sent.
    /// - Parameter isDraft: True to remove the content when the call that adds it does not complete.
    func keepWaiting(_ id: ItemID, _ body: [UInt8], of attachment: ItemID, isDraft: Bool) throws {
        try insert(id, body, waiting: attachment, isDraft: isDraft)
    }

    /// Marks a copy as waiting, because the server has lost the chunk.
    func sendAgain(_ id: ItemID, of attachment: ItemID) throws {
        try database.execute(
            "UPDATE chunk_contents SET waiting = ?, draft = 0 WHERE id = ? AND waiting IS NULL",
            .blob(attachment.bytes), .blob(id.bytes))
    }

    /// Records that the server has the content, which stays as a copy within the limit.
    func noteArrived(_ id: ItemID, copyLimit: Int64) throws {
        let count = try database.execute(
            "UPDATE chunk_contents SET waiting = NULL, draft = 0 WHERE id = ? AND waiting IS NOT NULL",
            .blob(id.bytes))
        if count > 0 { try removeCopies(downTo: copyLimit) }
    }

    /// Records that the call that adds an attachment has completed.
    func settleWaiting(of attachment: ItemID) throws {
        try database.execute("UPDATE chunk_contents SET draft = 0 WHERE waiting = ?", .blob(attachment.bytes))
    }

    /// Returns the attachments of calls that did not complete and cannot be repeated.
    func unsettledAttachments() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT waiting FROM chunk_contents WHERE waiting IS NOT NULL AND draft = 1") {
            try Self.id($0, 0)
        }
    }

    /// Removes waiting content unless it is in `kept`.
    func forgetWaiting(of attachment: ItemID, except kept: Set<ItemID>) throws {
        for chunk in try waitingChunks() where chunk.attachment == attachment && !kept.contains(chunk.id) {
            try forgetContent(chunk.id)
        }
    }

    // MARK: Copies

    func copiedByteCount() throws -> Int64 { try sum("waiting IS NULL") }

    func hasCopies() throws -> Bool {
        try !database.rows("SELECT 1 FROM chunk_contents WHERE waiting IS NULL LIMIT 1", decode: { _ in true })
            .isEmpty
    }

    /// Stores a copy of a chunk on the server. The least recently used copies are removed.
    fileprivate func keepCopy(_ id: ItemID, _ body: [UInt8], limit: Int64) throws {
        guard body.count <= limit, try chunkContent(id) == nil else { return }
        try insert(id, body, waiting: nil, isDraft: false)
        try removeCopies(downTo: limit)
    }

    /// Records that a copy was read. A copy among the more recently used half is not updated.
    fileprivate func noteUse(_ id: ItemID) throws {
        try database.execute(
            """
            UPDATE chunk_contents SET used = (SELECT max(used) + 1 FROM chunk_contents)
            WHERE id = ? AND waiting IS NULL
                AND used < (SELECT max(used) - count(*) / 2 FROM chunk_contents)
            """, .blob(id.bytes))
    }

    /// Removes the least recently used copies until the others are within a limit.
    fileprivate func removeCopies(downTo limit: Int64) throws {
        var count = try copiedByteCount()
        guard count > limit else { return }
        let oldest = try database.rows(
            "SELECT id, byte_count FROM chunk_contents WHERE waiting IS NULL ORDER BY used"
        ) { (id: try Self.id($0, 0), byteCount: $0.integer(1) ?? 0) }
        try transaction {
            for copy in oldest where count > limit {
                try forgetContent(copy.id)
                count -= copy.byteCount
            }
        }
    }

    func forgetContent(_ id: ItemID) throws {
        try database.execute("DELETE FROM chunk_contents WHERE id = ?", .blob(id.bytes))
    }

    // MARK: Keys

    /// Seals the content under the keys of `new`. A copy that `old` does not open is removed.
    func resealContents(from old: any ItemSealing, to new: any ItemSealing) throws {
        let ids = try database.rows("SELECT id FROM chunk_contents") { try Self.id($0, 0) }
        for id in ids {
            guard let content = try chunkContent(id), new.isOutdated(content) else { continue }
            if let plain = try? old.openChunk(content, id), let sealed = try? new.sealChunk(plain, id) {
                try replaceContent(id, by: sealed.body.bytes)
            } else if try !isWaiting(id) {
                try forgetContent(id)
            }
        }
    }

    /// Replaces the content by the same one under another key.
    func replaceContent(_ id: ItemID, by body: [UInt8]) throws {
        try database.execute(
            "UPDATE chunk_contents SET body = ?, byte_count = ? WHERE id = ?", .blob(body),
            .integer(Int64(body.count)), .blob(id.bytes))
    }

    // MARK: Parts

    private func sum(_ condition: String) throws -> Int64 {
        try database.rows("SELECT coalesce(sum(byte_count), 0) FROM chunk_contents WHERE \(condition)") {
            $0.integer(0) ?? 0
        }.first ?? 0
    }

    private func insert(_ id: ItemID, _ body: [UInt8], waiting: ItemID?, isDraft: Bool) throws {
        try database.execute(
            """
            INSERT INTO chunk_contents (id, waiting, draft, byte_count, used, body)
            SELECT ?, ?, ?, ?, coalesce(max(used), 0) + 1, ? FROM chunk_contents WHERE true
            ON CONFLICT (id) DO UPDATE SET waiting = excluded.waiting, draft = excluded.draft,
                byte_count = excluded.byte_count, used = excluded.used, body = excluded.body
            """, .blob(id.bytes), .optional(waiting?.bytes), .integer(isDraft ? 1 : 0), .integer(Int64(body.count)),
            .blob(body))
    }
}
