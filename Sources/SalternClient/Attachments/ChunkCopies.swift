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
