internal import Cryptography

/// Chunks that the server has lost, as after a restore, go up again from where their content is.
extension Vault {
    /// The manifests here of which the server lacks chunks. They are looked for only after it was seen to lack one.
    func attachmentsLackingChunks() throws(VaultError) -> [Attachment] {
        guard try stored({ try store.number(.chunksWhole) }) == nil else { return [] }
        let sealer = try open.engine.sealer
        let there = Set(try stored { try store.chunks().map(\.id) })
        let (lacking, isWhole) = try manifests(lackingChunksOf: there, sealer)
        if lacking.isEmpty && isWhole { try stored { try store.set(.chunksWhole, 1) } }
        return lacking
    }

    /// Sends what the server lacks of a manifest's chunks.
    /// - Parameter source: Has the manifest's content. Where it has another, no more is sent.
    /// - Throws: ``VaultError/noRoom(_:)`` when the plan has no room for all that is left of it.
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

    /// Why the chunks that are missing still do not fit; nil when nobody can say.
    private func shortage(of attachment: Attachment) async -> VaultError? {
        guard let room = try? await room(), let there = try? stored({ Set(try store.chunks().map(\.id)) }) else {
            return nil
        }
        var missing = AttachmentSize(chunkCount: 0, properties: [:])
        // Its manifest is there.
        missing = missing.replacing(missing.manifestByteCount)
        for (index, id) in attachment.chunks.enumerated() where !there.contains(id) {
            missing.add(attachment.byteCount(ofPiece: index))
        }
        return room.shortage(missing).map { .noRoom($0) }
    }
}
