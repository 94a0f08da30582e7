public import Cryptography
internal import Foundation

extension Vault {
    /// Creates an attachment's manifest, and sends long content to the server. Then put ``Attachment/body()``, or a
    /// value that contains the attachment, in an item. Do so before creating the next version under its id: content
    /// that no item names is removed.
    ///
    /// When the server is unreachable, long content waits sealed on this device, as edits do, within
    /// ``AttachmentStorage/waitingByteLimit``. The next ``sync()`` sends it, and then the items that name it. Content
    /// that fits in an item never needs network.
    ///
    /// An interrupted or cancelled call continues when it is repeated with the same id. It adds only pieces that are
    /// neither on the server nor on this device. ``abandonAttachment(_:)`` is for callers that do not continue. Without
    /// an id a call cannot be continued, so its pieces are taken back.
    ///
    /// If the server is reachable, its plan is checked first for enough room for the whole attachment. Pieces are taken
    /// back when the room is exhausted later.
    ///
    /// Example: "Attachments" in docs/app.md.
    /// - Parameters:
    ///   - id: The id of the previous version, if there is one: only changed pieces are added. Otherwise an id that the
    ///     caller has generated and keeps until the call has completed.
    ///   - progress: Is called after each piece.
    /// - Throws: ``VaultError/noRoom(_:)`` for a limit of the plan, or of this device
    ///   (``PlanShortage/Limit/waitingBytes``). ``VaultError/unavailable(_:)`` when the connection is lost and the
    ///   other pieces have no room to wait.
    public func attach(
        _ source: AttachmentSource, id: ItemID? = nil, properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        try await attach(source, AttachmentDraft(id), properties: properties, progress: progress)
    }

    func attach(
        _ source: AttachmentSource, _ draft: AttachmentDraft, properties: [String: String],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        var draft = draft
        if source.byteCount > settings.attachments.copiedByteLimit { draft.keepsCopies = false }
        let (size, room) = try await pieces(of: source.byteCount, mayWait: draft.keepsContent)
        guard source.byteCount > Int64(size) else {
            let content = try Self.read(source, 0, Int(source.byteCount))
            return Attachment(
                id: draft.id, byteCount: source.byteCount, digest: SHA256.hash(content).bytes, properties: properties,
                chunkByteCount: size, chunks: [], inline: content)
        }
        try beginAttaching(draft)
        let chunks: [ItemID]
        let digest: [UInt8]
        do throws(VaultError) {
            defer { endAttaching(draft) }
            if let room { try await refuse(source, draft, size, room, properties) }
            (chunks, digest) = try await add(source, draft, size, isAway: room == nil, progress)
        } catch {
            if !draft.isResumable || error.isForWantOfRoom { await giveUp(draft) }
            throw error.isRefusalForWantOfRoom ? await reason(error, source, draft, size, properties) : error
        }
        await settle(draft, chunks)
        return Attachment(
            id: draft.id, byteCount: source.byteCount, digest: digest, properties: properties, chunkByteCount: size,
            chunks: chunks, inline: nil)
    }

    private func beginAttaching(_ draft: AttachmentDraft) throws(VaultError) {
        if draft.isResumable { try stored { try store.resumeDraft(draft.id) } }
        attaching[draft.id, default: Attaching()].callCount += 1
        // The result of another call can be outdated.
        attaching[draft.id]?.before = nil
    }

    private func endAttaching(_ draft: AttachmentDraft) {
        attaching[draft.id]?.callCount -= 1
        if attaching[draft.id]?.callCount == 0 { attaching[draft.id] = nil }
    }

    /// Sends the content piece by piece. Pieces that cannot be sent wait on this device.
    /// - Parameter isAway: True when the server was unreachable before.
    private func add(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int, isAway: Bool,
        _ progress: @Sendable (AttachmentProgress) -> Void
    ) async throws(VaultError) -> (chunks: [ItemID], digest: [UInt8]) {
        var isAway = isAway
        if isAway { try checkWaitingRoom(source.byteCount, size, draft, else: nil) }
        var chunks: [ItemID] = []
        var hash = SHA256.Incremental()
        var offset: Int64 = 0
        while offset < source.byteCount {
            if Task.isCancelled { throw .cancelled }
            try await beforePiece?(self)
            let content = try Self.read(source, offset, Int(min(Int64(size), source.byteCount - offset)))
            hash.update(content)
            if !isAway {
                do throws(VaultError) {
                    chunks.append(try await send(content, draft.id, chunks.count, draft))
                } catch {
                    guard draft.keepsContent, error.isAbsence, !Task.isCancelled else { throw error }
                    try checkWaitingRoom(source.byteCount - offset, size, draft, else: error)
                    isAway = true
                }
            }
            if isAway {
                chunks.append(try keepWaiting(content, draft, chunks.count))
                // Lets other calls run between two pieces.
                await Task.yield()
            }
            offset += Int64(content.count)
            progress(AttachmentProgress(byteCount: offset, total: source.byteCount))
        }
        return (chunks, hash.finalize().bytes)
    }

    /// Throws when the rest of the content has no room to wait.
    /// - Parameter cause: The error to throw, which is why the rest has to wait; nil to throw the shortage itself.
    private func checkWaitingRoom(
        _ byteCount: Int64, _ size: Int, _ draft: AttachmentDraft, else cause: VaultError?
    ) throws(VaultError) {
        guard let shortage = try waitingShortage(byteCount, size: size, of: draft.id) else { return }
        throw cause ?? .noRoom(shortage)
    }

    /// Returns one piece of the content, of ``Attachment/pieceCount``. A piece that waits or has a copy on this device
    /// is read without network. Another piece is fetched, and a copy is kept. After an interruption the reader
    /// continues with the missing piece.
    ///
    /// ```swift
    /// let attachment = try await vault.attach(AttachmentSource(file: file))
    /// for index in 0..<attachment.pieceCount { print(try await vault.piece(index, of: attachment).count) }
    /// ```
    public func piece(_ index: Int, of attachment: Attachment) async throws(VaultError) -> SecureBytes {
        try await piece(index, of: attachment, keepsCopy: true)
    }

    /// - Parameter keepsCopy: True to keep a copy of a fetched piece on this device.
    func piece(
        _ index: Int, of attachment: Attachment, keepsCopy: Bool
    ) async throws(VaultError) -> SecureBytes {
        if let inline = attachment.inline { return inline }
        if Task.isCancelled { throw .cancelled }
        let id = attachment.chunks[index]
        do throws(VaultError) {
            if let piece = try localPiece(index, of: attachment) { return piece }
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
            // The name is derived from the content, so no other content matches.
            guard let opened, try isPiece(opened, index, of: attachment, open.engine.sealer) else {
                throw VaultError.unreadable
            }
            if keepsCopy { keepCopy(id, content, of: attachment.byteCount) }
            return opened
        } catch {
            switch error {
            case .notFound: throw .missingChunk(id)
            case .unreadable: throw .damagedChunk(id)
            default: throw error
            }
        }
    }

    /// Returns the whole content, which has to fit in memory.
    ///
    /// Example: "Attachments" in docs/app.md.
    public func content(
        of attachment: Attachment, progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> SecureBytes {
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
    ) throws(VaultError) -> SecureBytes {
        guard let content = try? source.read(offset, count), content.count == count else { throw .sourceFailed }
        return content
    }
}
