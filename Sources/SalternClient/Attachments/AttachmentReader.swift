internal import Cryptography

/// Reads the content of attachments, from this device or from the server.
final class AttachmentReader {
    private let scope: ItemScope
    private let store: Store
    private let copies: ChunkCopies
    private let sender: ChunkSender

    init(_ scope: ItemScope, _ copies: ChunkCopies, _ sender: ChunkSender) {
        self.scope = scope
        self.copies = copies
        self.sender = sender
        store = scope.store
    }

    /// Returns one piece of the content, from this device or from the server.
    /// - Parameter keepsCopy: True to keep a copy of a fetched piece on this device.
    func piece(
        _ index: Int, of attachment: Attachment, keepsCopy: Bool
    ) async throws(VaultError) -> SecureBytes {
        if let inline = attachment.inline { return inline }
        if Task.isCancelled { throw .cancelled }
        let id = attachment.chunks[index]
        do throws(VaultError) {
            if let piece = try copies.piece(index, of: attachment) { return piece }
            guard let state = try await sender.state(ofChunk: id, scope.open), let content = state.content else {
                try scope.stored { try store.transaction { try store.loseChunk(id) } }
                throw VaultError.notFound
            }
            var opened = try? scope.sealer.openChunk(content, id)
            if opened == nil {
                // Another device may have rotated the keys since the last sync.
                try await learn()
                opened = try? scope.sealer.openChunk(content, id)
            }
            // The name is derived from the content, so no other content matches.
            guard let opened, try copies.isPiece(opened, index, of: attachment, scope.sealer) else {
                throw VaultError.unreadable
            }
            if keepsCopy { copies.keep(id, content, of: attachment.byteCount) }
            return opened
        } catch {
            switch error {
            case .notFound: throw .missingChunk(id)
            case .unreadable: throw .damagedChunk(id)
            default: throw error
            }
        }
    }

    private func learn() async throws(VaultError) {
        if scope.owner == .account { return try await scope.learn() }
        await scope.serverLock.lock()
        defer { scope.serverLock.unlock() }
        try await scope.learn()
    }

    /// Returns the whole content, which has to fit in memory.
    func content(
        of attachment: Attachment, progress: @Sendable (AttachmentProgress) -> Void
    ) async throws(VaultError) -> SecureBytes {
        var pieces: [SecureBytes] = []
        var count: Int64 = 0
        for index in 0..<attachment.pieceCount {
            let piece = try await piece(index, of: attachment, keepsCopy: true)
            pieces.append(piece)
            count += Int64(piece.count)
            progress(AttachmentProgress(byteCount: count, total: attachment.byteCount))
        }
        return SecureBytes(joining: pieces)
    }

    /// Returns the number of pieces at the start of an attachment that `source` already contains.
    func fetchedPieces(of attachment: Attachment, in source: AttachmentSource) async throws(VaultError) -> Int {
        if attachment.inline != nil { return 0 }
        for (index, id) in attachment.chunks.enumerated() {
            let offset = Int64(index) * Int64(attachment.chunkByteCount)
            let count = attachment.byteCount(ofPiece: index)
            guard !Task.isCancelled, offset + Int64(count) <= source.byteCount,
                let content = try? source.read(offset, count), content.count == count,
                try scope.sealer.isChunkID(id, attachment.id, index, content)
            else { return index }
            // Lets other calls run between two pieces.
            await Task.yield()
        }
        return attachment.chunks.count
    }
}
