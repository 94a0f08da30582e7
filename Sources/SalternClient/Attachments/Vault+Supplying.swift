internal import Cryptography

/// Sends chunks again that the server has lost, for example by a restore, from a source of their content.
extension Vault {
    /// Returns the manifests whose chunks are not all on the server. It searches only after a missing chunk was
    /// noticed.
    func attachmentsLackingChunks() throws(VaultError) -> [Attachment] {
        guard try stored({ try store.number(.chunksWhole) }) == nil else { return [] }
        let sealer = try open.engine.sealer
        let there = Set(try stored { try store.chunks().map(\.id) })
        let (lacking, isWhole) = try manifests(lackingChunksOf: there, sealer)
        if lacking.isEmpty && isWhole { try stored { try store.set(.chunksWhole, 1) } }
        return lacking
    }

    /// Sends the missing chunks of a manifest.
    /// - Parameter source: The manifest's content. At the first piece that differs, sending ends.
    /// - Throws: ``VaultError/noRoom(_:)`` when the plan has no room for the remaining chunks.
    func supply(_ attachment: Attachment, from source: AttachmentSource) async throws(VaultError) {
        guard source.byteCount == attachment.byteCount else { return }
        for (index, id) in attachment.chunks.enumerated() {
            if Task.isCancelled { throw .cancelled }
            guard try stored({ try store.chunk(id) }) == nil else { continue }
            let offset = Int64(index) * Int64(attachment.chunkByteCount)
            let content = try Self.read(source, offset, attachment.byteCount(ofPiece: index))
            do throws(VaultError) {
                guard try open.engine.sealer.chunkID(attachment.id, index, content) == id else { return }
                _ = try await send(content, attachment.id, index)
            } catch {
                let failure = error
                throw failure.isForWantOfRoom ? await shortage(of: attachment) ?? failure : failure
            }
        }
    }

    /// Returns the limit that the missing chunks exceed; nil when it cannot be determined.
    private func shortage(of attachment: Attachment) async -> VaultError? {
        guard let room = try? await room(), let there = try? stored({ Set(try store.chunks().map(\.id)) }) else {
            return nil
        }
        var missing = AttachmentSize(chunkCount: 0, properties: [:])
        // The server has its manifest.
        missing = missing.replacing(missing.manifestByteCount)
        for (index, id) in attachment.chunks.enumerated() where !there.contains(id) {
            missing.add(attachment.byteCount(ofPiece: index))
        }
        return room.shortage(missing).map { .noRoom($0) }
    }
}
