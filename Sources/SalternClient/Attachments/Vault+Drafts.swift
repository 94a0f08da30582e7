/// Chunks of an abandoned attachment are taken back at once. No item names them, and until a sweep they would use room
/// of the plan.
///
/// Another device with the same content at the same position of the attachment uses the same chunk. A device that finds
/// an existing chunk writes it again. Its creator takes it back only at the revision of the creation: see
/// ``send(_:_:_:_:)``.
extension Vault {
    /// Takes back the chunks that ``attach(_:id:properties:progress:)`` has sent under an id of the caller, when the
    /// caller does not continue.
    ///
    /// It removes only chunks that this device created and that no manifest on this device names. Chunks that cannot be
    /// removed now, for example without network, are removed by the next ``sync()``.
    ///
    /// ```swift
    /// do {
    ///     _ = try await vault.attach(AttachmentSource(file: file), id: id)
    /// } catch {
    ///     try await vault.abandonAttachment(id)
    /// }
    /// ```
    public func abandonAttachment(_ id: ItemID) async throws(VaultError) {
        try await takeBack(id)
    }

    /// Removes the chunks of a draft from the server, except those in `kept`.
    func takeBack(_ attachment: ItemID, except kept: [ItemID] = []) async throws(VaultError) {
        try forgetWaiting(of: attachment, except: kept)
        let hasAny = try stored {
            try store.transaction {
                try store.abandonDraft(attachment, except: kept)
                return try !store.abandonedChunks(of: attachment).isEmpty
            }
        }
        if !hasAny { return }
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await removeAbandoned(of: attachment)
    }

    /// Takes back a draft after an error or cancellation. Chunks that cannot be taken back now are taken back later.
    func giveUp(_ draft: AttachmentDraft) async {
        await Task { try? await takeBack(draft.id) }.value
    }

    /// Completes a draft with these chunks, and takes back chunks of an earlier state of its content.
    func settle(_ draft: AttachmentDraft, _ chunks: [ItemID]) async {
        if draft.isResumable {
            try? await takeBack(draft.id, except: chunks)
        } else {
            try? stored {
                try store.transaction {
                    try store.forgetDraft(draft.id)
                    try store.settleWaiting(of: draft.id)
                }
            }
        }
    }

    /// Returns the parts of an attachment that items on this device have. It is called when the server has a chunk
    /// already, or when the room is checked.
    func before(_ draft: AttachmentDraft) throws(VaultError) -> AttachmentDraft.Before {
        if let known = draft.before ?? attaching[draft.id]?.before { return known }
        var before = AttachmentDraft.Before()
        if try stored({ try !store.hasChunks() }) { return before }
        _ = try forEachManifest(of: draft.id, open.engine.sealer) { id, content, known in
            let isOnServer = try store.item(id)?.content == content
            if isOnServer { before.manifestByteCount = Int64(content.body.bytes.count) }
            // A chunk that only the trash of this device names may be swept by another device at any time.
            guard try isOnServer || store.current(id) == content else { return }
            before.named.formUnion(known.chunks)
        }
        attaching[draft.id]?.before = before
        return before
    }

    /// Takes back the remaining chunks of abandoned attachments.
    func takeBackAbandoned() async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await removeAbandoned()
    }

    /// Removes the chunks of abandoned attachments. The caller holds the vault's lock.
    func removeAbandoned() async throws(VaultError) {
        for attachment in try stored({ try store.abandonedDrafts() }) { try await removeAbandoned(of: attachment) }
    }

    private func removeAbandoned(of attachment: ItemID) async throws(VaultError) {
        // Another call is sending the attachment.
        guard attaching[attachment] == nil else { return }
        let opened = try open
        var named: Set<ItemID> = []
        // A chunk's name is derived from its attachment, so manifests of other attachments do not contain it.
        let isWhole = try forEachManifest(of: attachment, opened.engine.sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        // An item that cannot be opened may be a manifest.
        guard isWhole, try !mayLackManifests() else { return }
        for chunk in try stored({ try store.abandonedChunks(of: attachment) }) {
            // Another call may have put its manifest since.
            guard try stored({ try store.draftChunk(chunk.id) }) != nil else { continue }
            let isGone = named.contains(chunk.id) ? false : try await remove(chunk, opened)
            try stored {
                try store.transaction {
                    if isGone { try store.forgetChunk(chunk.id) }
                    try store.forgetDraftChunk(chunk.id)
                }
            }
        }
    }

    /// Deletes a chunk at the revision of its creation.
    /// - Returns: True when it is deleted. False when another device has written it, which may name it.
    private func remove(_ chunk: DraftChunk, _ opened: Opened) async throws(VaultError) -> Bool {
        var created = chunk.revision
        if created == nil {
            guard let state = try await state(ofChunk: chunk.id, opened), let content = state.content else {
                return true
            }
            guard chunk.hasSent(content) else { return false }
            created = state.revision
        }
        guard let created else { return false }
        do throws(APIError) {
            _ = try await settings.retries({ () throws(APIError) in
                try await api.deleteItem(chunk.id, .revision(created), opened.token)
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
