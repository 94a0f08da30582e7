/// Takes back the chunks of an abandoned attachment at once. No item names them, and until a sweep they would use room
/// of the plan.
///
/// Another device with the same content at the same position of the attachment uses the same chunk. A device that finds
/// an existing chunk writes it again. Its creator takes it back only at the revision of the creation: see
/// ``ChunkSender/send(_:_:_:_:)``.
final class AbandonedChunks {
    private let session: VaultSession
    private let store: Store
    private let index: ManifestIndex
    private let running: RunningAttachments
    private let sender: ChunkSender
    private let waiting: WaitingChunks

    init(
        _ session: VaultSession, _ index: ManifestIndex, _ running: RunningAttachments, _ sender: ChunkSender,
        _ waiting: WaitingChunks
    ) {
        self.session = session
        self.index = index
        self.running = running
        self.sender = sender
        self.waiting = waiting
        store = session.store
    }

    /// Removes the chunks of a draft from the server, except those in `kept`.
    func takeBack(_ attachment: ItemID, except kept: [ItemID] = []) async throws(VaultError) {
        try waiting.forget(of: attachment, except: kept)
        let hasAny = try session.stored {
            try store.transaction {
                try store.abandonDraft(attachment, except: kept)
                return try !store.abandonedChunks(of: attachment).isEmpty
            }
        }
        if !hasAny { return }
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await removeAbandoned(of: attachment)
    }

    /// Takes back a draft after an error or cancellation. Chunks that cannot be taken back now are taken back later.
    func giveUp(_ draft: AttachmentDraft, isolation: isolated (any Actor)? = #isolation) async {
        await Task {
            _ = isolation
            try? await takeBack(draft.id)
        }.value
    }

    /// Completes a draft with these chunks, and takes back chunks of an earlier state of its content.
    func settle(_ draft: AttachmentDraft, _ chunks: [ItemID]) async {
        if draft.isResumable {
            try? await takeBack(draft.id, except: chunks)
        } else {
            try? session.stored {
                try store.transaction {
                    try store.forgetDraft(draft.id)
                    try store.settleWaiting(of: draft.id)
                }
            }
        }
    }

    /// Takes back the remaining chunks of abandoned attachments.
    func takeAllBack() async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await removeAbandoned()
    }

    /// Removes the chunks of abandoned attachments. The caller holds the vault's lock.
    func removeAbandoned() async throws(VaultError) {
        for attachment in try session.stored({ try store.abandonedDrafts() }) {
            try await removeAbandoned(of: attachment)
        }
    }

    private func removeAbandoned(of attachment: ItemID) async throws(VaultError) {
        // Another call is sending the attachment.
        guard !running.contains(attachment) else { return }
        let opened = try session.open
        var named: Set<ItemID> = []
        // A chunk's name is derived from its attachment, so manifests of other attachments do not contain it.
        let isWhole = try index.forEachManifest(of: attachment, opened.engine.sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        // An item that cannot be opened may be a manifest.
        guard isWhole, try !index.mayLackManifests() else { return }
        for chunk in try session.stored({ try store.abandonedChunks(of: attachment) }) {
            // Another call may have put its manifest since.
            guard try session.stored({ try store.draftChunk(chunk.id) }) != nil else { continue }
            let isGone = named.contains(chunk.id) ? false : try await remove(chunk, opened)
            try session.stored {
                try store.transaction {
                    if isGone { try store.forgetChunk(chunk.id) }
                    try store.forgetDraftChunk(chunk.id)
                }
            }
        }
    }

    /// Deletes a chunk at the revision of its creation.
    /// - Returns: True when it is deleted. False when another device has written it, which may name it.
    private func remove(_ chunk: DraftChunk, _ opened: VaultSession.Opened) async throws(VaultError) -> Bool {
        var created = chunk.revision
        if created == nil {
            guard let state = try await sender.state(ofChunk: chunk.id, opened), let content = state.content else {
                return true
            }
            guard chunk.hasSent(content) else { return false }
            created = state.revision
        }
        guard let created else { return false }
        do throws(APIError) {
            _ = try await session.syncRetries({ () throws(APIError) in
                try await session.api.deleteItem(chunk.id, .revision(created), opened.token)
            })
            return true
        } catch {
            guard case .problem(let problem) = error, [.notFound, .preconditionFailed].contains(problem.code) else {
                throw VaultError(error)
            }
            return problem.current?.deleted ?? true
        }
    }
}
