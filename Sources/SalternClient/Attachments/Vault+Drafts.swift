/// Chunks of an attachment that was given up are taken back at once: nothing names them, and until they are swept they would
/// take the room of everything else.
///
/// Another device that has the same content at the same place of the attachment names the same chunk. Whoever names one that
/// is there already writes it anew, and who has created it takes it back only at the revision of that: see
/// ``send(_:_:_:_:)``.
extension Vault {
    /// Takes back what ``attach(_:id:properties:progress:)`` has sent under an id of the caller's, who will not go on with it.
    ///
    /// Only what was created from this device, and what no manifest names here, is removed. What cannot be removed now, as
    /// without network, is removed by the next ``sync()``.
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

    /// Removes what of a draft is on the server, but for `kept`.
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

    /// For who has failed, also by being cancelled: what cannot be taken back now is so later.
    func giveUp(_ draft: AttachmentDraft) async {
        await Task { try? await takeBack(draft.id) }.value
    }

    /// The attachment is made of these chunks: what was sent of an earlier state of its content is not of use.
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

    /// What items here have of an attachment: asked for by who meets a chunk that the server has, or wants room.
    func before(_ draft: AttachmentDraft) throws(VaultError) -> AttachmentDraft.Before {
        if let known = draft.before ?? attaching[draft.id]?.before { return known }
        var before = AttachmentDraft.Before()
        if try stored({ try !store.hasChunks() }) { return before }
        _ = try forEachManifest(of: draft.id, open.engine.sealer) { id, content, known in
            let isOnServer = try store.item(id)?.content == content
            if isOnServer { before.manifestByteCount = Int64(content.body.bytes.count) }
            // What only the trash of this device names, another device may sweep any day.
            guard try isOnServer || store.current(id) == content else { return }
            before.named.formUnion(known.chunks)
        }
        attaching[draft.id]?.before = before
        return before
    }

    /// Takes back what was left of attachments with which nobody goes on.
    func takeBackAbandoned() async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await removeAbandoned()
    }

    /// For who has the turn.
    func removeAbandoned() async throws(VaultError) {
        for attachment in try stored({ try store.abandonedDrafts() }) { try await removeAbandoned(of: attachment) }
    }

    private func removeAbandoned(of attachment: ItemID) async throws(VaultError) {
        // Somebody is at it.
        guard attaching[attachment] == nil else { return }
        let opened = try open
        var named: Set<ItemID> = []
        // A chunk's name is made of its attachment: no other one's manifest has it.
        let isWhole = try forEachManifest(of: attachment, opened.engine.sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        // Where something does not open it may be a manifest.
        guard isWhole, try !mayLackManifests() else { return }
        for chunk in try stored({ try store.abandonedChunks(of: attachment) }) {
            // Somebody may have put its manifest meanwhile.
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

    /// - Returns: Whether it is gone. Otherwise it is there as another device has written it, which may name it.
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
