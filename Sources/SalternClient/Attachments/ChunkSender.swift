internal import Cryptography
internal import Foundation

/// Sends chunks to the server, each once.
final class ChunkSender {
    private let scope: ItemScope
    private let store: Store
    private let running: RunningAttachments
    private let copies: ChunkCopies

    init(_ scope: ItemScope, _ running: RunningAttachments, _ copies: ChunkCopies) {
        self.scope = scope
        self.running = running
        self.copies = copies
        store = scope.store
    }

    /// Sends a chunk, unless the server has it and no device can take it back.
    ///
    /// Another device may have sent a chunk that no item on this device names, and may take it back. Such a chunk is
    /// written again: taking it back requires the revision at which it was created.
    /// - Parameter draft: Nil when an item names the chunk.
    func send(
        _ content: SecureBytes, _ attachment: ItemID, _ index: Int, _ draft: AttachmentDraft? = nil
    ) async throws(VaultError) -> ItemID {
        // The account's keys do not change while this call holds the lock.
        await scope.serverLock.lock()
        defer { scope.serverLock.unlock() }
        do throws(VaultError) {
            return try await sendNow(content, attachment, index, draft)
        } catch .refused(let problem) where problem.isAboutMembership {
            // An entry of the log has changed the keys or the roles since.
            try await scope.learn()
            return try await sendNow(content, attachment, index, draft)
        }
    }

    private func sendNow(
        _ content: SecureBytes, _ attachment: ItemID, _ index: Int, _ draft: AttachmentDraft?
    ) async throws(VaultError) -> ItemID {
        let opened = try scope.open
        let sealer = opened.engine.sealer
        let id = sealer.chunkID(attachment, index, content)
        let known = try scope.stored { try store.chunk(id) }
        if let known, try await isKept(known, draft, opened) {
            try scope.stored { try store.noteArrived(id, copyLimit: copies.limit) }
            return id
        }
        guard let sealed = try? sealer.sealChunk(content, id) else { throw .unreadable }
        let written = try await write(
            id, sealed, known.map { .revision($0.revision) } ?? .absent, draft, opened)
        try note(written.state, isCreated: written.isCreated)
        return id
    }

    /// Writes a chunk.
    /// - Parameters:
    ///   - precondition: The expected state on the server.
    ///   - draft: Nil when an item names the chunk.
    /// - Returns: Also true when all of its revisions are of this draft, so that it can be taken back.
    func write(
        _ id: ItemID, _ sealed: ItemContent, _ precondition: Precondition, _ draft: AttachmentDraft?,
        _ opened: ItemScope.Opened
    ) async throws(VaultError) -> (state: ItemState, isCreated: Bool) {
        var precondition = precondition
        // No other device has written the chunk at this revision.
        let own = draft == nil ? nil : try scope.stored { try store.draftChunk(id)?.revision }
        for _ in 0..<Self.attempts {
            if let draft, precondition == .absent {
                try scope.stored { try store.noteSending(id, sealed, of: draft) }
            }
            do throws(APIError) {
                let state = try await scope.session.syncRetries({ () throws(APIError) in
                    try await scope.api.putItemBody(id, sealed, precondition, opened.token)
                })
                if let draft, draft.keepsContent, draft.keepsCopies {
                    copies.keep(id, sealed, of: Int64(sealed.body.bytes.count))
                }
                return (state, precondition == .absent || own.map { precondition == .revision($0) } ?? false)
            } catch {
                guard case .problem(let problem) = error, problem.code == .preconditionFailed else {
                    throw VaultError(error)
                }
                guard let current = problem.current, !current.deleted else {
                    precondition = .absent
                    continue
                }
                // An earlier request has sent it, and its reply was lost.
                if precondition == .absent, let content = current.content {
                    let sent = try scope.stored { try store.draftChunk(id) }
                    if content.digest == sealed.digest || sent?.hasSent(content) == true { return (current, true) }
                }
                precondition = .revision(current.revision)
            }
        }
        throw .unavailable(.unexpectedReply)
    }

    /// The maximum number of attempts when other devices write the chunk at the same time.
    private static let attempts = 8

    /// Returns true when the chunk on the server need not be sent again.
    private func isKept(
        _ chunk: StoredChunk, _ draft: AttachmentDraft?, _ opened: ItemScope.Opened
    ) async throws(VaultError) -> Bool {
        guard let draft else { return true }
        let sent = try scope.stored { try store.draftChunk(chunk.id) }
        if sent?.revision == chunk.revision { return isRecent(chunk.storedAt) }
        if try running.before(draft).named.contains(chunk.id) { return true }
        guard let sent, sent.revision == nil else { return false }
        guard let state = try await state(ofChunk: chunk.id, opened), let content = state.content,
            sent.hasSent(content)
        else { return false }
        try note(state, isCreated: true)
        return isRecent(state.updatedAt)
    }

    /// Returns true when the server stored a chunk within the last day. Another device removes chunks that had no name
    /// for weeks. An older chunk that no item names is therefore written again. The server's clock decides: with a
    /// wrong clock of the device, every interrupted upload would send all its chunks again.
    private func isRecent(_ storedAt: Date) -> Bool {
        abs((scope.api.clock.time() ?? scope.settings.now()).timeIntervalSince(storedAt)) <= 86_400
    }

    private func note(_ state: ItemState, isCreated: Bool) throws(VaultError) {
        try scope.stored {
            try store.transaction {
                if isCreated {
                    try store.noteCreated(state.id, state.revision)
                } else {
                    // Another device has created the chunk, or has named it since.
                    try store.forgetDraftChunk(state.id)
                }
                try store.noteChunk(state.id, state.revision, storedAt: state.updatedAt)
                try store.noteArrived(state.id, copyLimit: copies.limit)
            }
        }
    }

    /// Fetches a chunk from the server; nil when there is none.
    func state(ofChunk id: ItemID, _ opened: ItemScope.Opened) async throws(VaultError) -> ItemState? {
        do throws(APIError) { return try await scope.server(opened.token).item(id) } catch { throw VaultError(error) }
    }

    // MARK: Rotation

    /// Fetches a chunk and seals it with the key of a rotation.
    /// - Returns: nil when the server no longer has it.
    func resealedChunk(
        _ chunk: StoredChunk, from old: Sealer, to new: Sealer, _ token: Token
    ) async throws(VaultError) -> StagedItem? {
        let state = try await scope.session.call { _ throws(APIError) in
            try await scope.server(token, Retries(attempts: 1)).item(chunk.id)
        }
        guard let state, let content = state.content else { return nil }
        guard let plain = try? old.openChunk(content, chunk.id), let sealed = try? new.sealChunk(plain, chunk.id) else {
            throw .unreadable
        }
        return StagedItem(
            id: chunk.id, ifRevision: state.revision, format: sealed.format, title: nil, body: sealed.body.bytes)
    }
}
