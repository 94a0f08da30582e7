internal import Cryptography

extension Vault {
    /// Returns the number of pieces at the start of an attachment that `source` already contains.
    ///
    /// An interrupted download continues with the piece of this number. Each piece in `source` is compared with its
    /// name in the manifest, which is derived from its content. A file with other content therefore has no such pieces.
    ///
    /// ```swift
    /// let attachment = try await vault.attach(AttachmentSource(file: file))
    /// let next = try await vault.fetchedPieces(of: attachment, in: AttachmentSource(file: file))
    /// for index in next..<attachment.pieceCount { print(try await vault.piece(index, of: attachment).count) }
    /// ```
    /// - Parameter source: The result of an earlier download. It can be shorter or longer than the attachment.
    /// - Throws: ``VaultError/locked``.
    public func fetchedPieces(of attachment: Attachment, in source: AttachmentSource) async throws(VaultError) -> Int {
        if attachment.inline != nil { return 0 }
        for (index, id) in attachment.chunks.enumerated() {
            let offset = Int64(index) * Int64(attachment.chunkByteCount)
            let count = attachment.byteCount(ofPiece: index)
            guard !Task.isCancelled, offset + Int64(count) <= source.byteCount,
                let content = try? source.read(offset, count), content.count == count,
                try open.engine.sealer.chunkID(attachment.id, index, content) == id
            else { return index }
            // Lets other calls run between two pieces.
            await Task.yield()
        }
        return attachment.chunks.count
    }
}
