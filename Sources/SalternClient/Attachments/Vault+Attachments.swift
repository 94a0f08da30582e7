public import Cryptography
internal import Foundation

extension Vault {
    /// Brings an attachment's content to the server, where it is long, and makes its manifest. Put ``Attachment/body()``
    /// in an item afterwards, and before the next version is made under its id: what no item names is removed.
    ///
    /// What was interrupted or cancelled goes on when it is called again with the same id: only what the server does not
    /// have is sent, and ``abandonAttachment(_:)`` is for who does not go on. Without an id nobody can go on: then what was
    /// sent is taken back. Content that fits in an item needs no network.
    ///
    /// Whether the plan has room for all of it is asked first; what runs out of room all the same is taken back.
    /// - Parameters:
    ///   - id: That of the version before, when there is one: then only what has changed is sent. Or one that the caller has
    ///     drawn, and keeps until it is done.
    ///   - progress: Is told after each piece.
    public func attach(
        _ source: AttachmentSource, id: ItemID? = nil, properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(AttachmentError) -> Attachment {
        try await attach(source, AttachmentDraft(id), properties: properties, progress: progress)
    }

    func attach(
        _ source: AttachmentSource, _ draft: AttachmentDraft, properties: [String: String],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(AttachmentError) -> Attachment {
        let (size, room) = try await pieces(of: source.byteCount)
        guard let room, source.byteCount > Int64(size) else {
            let content = try Self.read(source, 0, Int(source.byteCount))
            return Attachment(
                id: draft.id, byteCount: source.byteCount, digest: SHA256.hash(content).bytes, properties: properties,
                chunkByteCount: size, chunks: [], inline: content)
        }
        try beginAttaching(draft)
        let chunks: [ItemID]
        let digest: [UInt8]
        do throws(AttachmentError) {
            defer { endAttaching(draft) }
            try await refuse(source, draft, size, room, properties)
            (chunks, digest) = try await send(source, draft, size, progress)
        } catch {
            if !draft.isResumable || error.isForWantOfRoom { await giveUp(draft) }
            throw error.isRefusalForWantOfRoom ? await reason(error, source, draft, size, properties) : error
        }
        await settle(draft, chunks)
        return Attachment(
            id: draft.id, byteCount: source.byteCount, digest: digest, properties: properties, chunkByteCount: size,
            chunks: chunks, inline: nil)
    }

    private func beginAttaching(_ draft: AttachmentDraft) throws(AttachmentError) {
        do throws(VaultError) {
            if draft.isResumable { try stored { try store.resumeDraft(draft.id) } }
        } catch {
            throw AttachmentError(error)
        }
        attaching[draft.id, default: Attaching()].callCount += 1
        // What another call has seen may be other by now.
        attaching[draft.id]?.before = nil
    }

    private func endAttaching(_ draft: AttachmentDraft) {
        attaching[draft.id]?.callCount -= 1
        if attaching[draft.id]?.callCount == 0 { attaching[draft.id] = nil }
    }

    private func send(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int,
        _ progress: @Sendable (AttachmentProgress) -> Void
    ) async throws(AttachmentError) -> (chunks: [ItemID], digest: [UInt8]) {
        var chunks: [ItemID] = []
        var hash = SHA256.Incremental()
        var offset: Int64 = 0
        while offset < source.byteCount {
            if Task.isCancelled { throw .cancelled }
            do throws(VaultError) { try await beforePiece?(self) } catch { throw AttachmentError(error) }
            let content = try Self.read(source, offset, Int(min(Int64(size), source.byteCount - offset)))
            hash.update(content)
            do throws(VaultError) {
                chunks.append(try await send(content, draft.id, chunks.count, draft))
            } catch {
                throw AttachmentError(error)
            }
            offset += Int64(content.count)
            progress(AttachmentProgress(byteCount: offset, total: source.byteCount))
        }
        return (chunks, hash.finalize().bytes)
    }

    /// One piece of the content, of ``Attachment/pieceCount``: fetched when it is long. Who was interrupted goes on with
    /// the piece that is missing.
    public func piece(_ index: Int, of attachment: Attachment) async throws(AttachmentError) -> SecureBytes {
        if let inline = attachment.inline { return inline }
        if Task.isCancelled { throw .cancelled }
        let id = attachment.chunks[index]
        do throws(VaultError) {
            guard let state = try await state(ofChunk: id, open), let content = state.content else {
                try stored { try store.transaction { try store.loseChunk(id) } }
                throw VaultError.notFound
            }
            var opened = try? open.engine.sealer.openChunk(content, id)
            if opened == nil {
                // Another device may have rotated the keys since the last sync.
                try await takeLaterKeyring()
                opened = try? open.engine.sealer.openChunk(content, id)
            }
            // The name is made of the content: nothing else can be in its place.
            guard let opened, opened.count == attachment.byteCount(ofPiece: index),
                try open.engine.sealer.chunkID(attachment.id, index, opened) == id
            else { throw VaultError.unreadable }
            return opened
        } catch {
            switch error {
            case .notFound: throw .missingChunk(id)
            case .unreadable: throw .damagedChunk(id)
            default: throw AttachmentError(error)
            }
        }
    }

    /// The whole content: for what fits in memory.
    public func content(
        of attachment: Attachment, progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(AttachmentError) -> SecureBytes {
        var pieces: [SecureBytes] = []
        var count: Int64 = 0
        for index in 0..<attachment.pieceCount {
            let piece = try await piece(index, of: attachment)
            pieces.append(piece)
            count += Int64(piece.count)
            progress(AttachmentProgress(byteCount: count, total: attachment.byteCount))
        }
        return SecureBytes(joining: pieces)
    }

    // MARK: Pieces

    static func read(
        _ source: AttachmentSource, _ offset: Int64, _ count: Int
    ) throws(AttachmentError) -> SecureBytes {
        guard let content = try? source.read(offset, count), content.count == count else { throw .sourceFailed }
        return content
    }
}
