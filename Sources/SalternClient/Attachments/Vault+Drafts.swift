/// Chunks of an attachment that was given up are taken back at once: nothing names them, and until they are swept they would
/// take the room of everything else.
extension Vault {
    /// Takes back what ``attach(_:id:properties:progress:)`` has sent under an id of the caller's, who will not go on with it.
    ///
    /// Only what was sent from this device is removed, and nothing of an attachment that is in an item here, or was: other
    /// devices may name its chunks. What cannot be removed now, as without network, is removed by the next attachment, or
    /// ``sweepChunks()``.
    public func abandonAttachment(_ id: ItemID) async throws(VaultError) {
        try stored { try store.abandonDraft(id) }
        try await takeBack(id)
    }

    /// Removes what of a draft is on the server, but for `kept`.
    func takeBack(_ attachment: ItemID, except kept: [ItemID] = []) async throws(VaultError) {
        let kept = Set(kept)
        func chunks() throws(VaultError) -> [ItemID] {
            try stored { try store.draftChunks(of: attachment) }.filter { !kept.contains($0) }
        }
        if try chunks().isEmpty { return }
        await beginTurn()
        defer { endTurn() }
        let opened = try open
        // Where something does not open it may be a manifest.
        guard let isKnown = try isKnown(attachment, opened.engine.sealer) else { return }
        // Another device that has the same content at the same place of this attachment names the same chunks.
        if isKnown { return try stored { try store.forgetDraft(attachment) } }
        for chunk in try chunks() {
            try await remove(chunk, opened)
            try stored {
                try store.transaction {
                    try store.forgetChunk(chunk)
                    try store.forgetDraftChunk(chunk)
                }
            }
        }
    }

    /// For who has failed, also by being cancelled: what cannot be taken back now is so later.
    func giveUp(_ draft: AttachmentDraft) async {
        guard draft.use != .shared else { return }
        await Task { try? await abandonAttachment(draft.id) }.value
    }

    /// The attachment is made of these chunks: what was sent of an earlier state of its content is not of use.
    func settle(_ draft: AttachmentDraft, _ chunks: [ItemID]) async {
        switch draft.use {
        case .single: try? stored { try store.forgetDraft(draft.id) }
        case .resumable: try? await takeBack(draft.id, except: chunks)
        case .shared: break
        }
    }

    /// Takes back what was left of attachments with which nobody goes on.
    func takeBackAbandoned() async throws(VaultError) {
        for attachment in try stored({ try store.abandonedDrafts() }) where !attaching.contains(attachment) {
            try await takeBack(attachment)
        }
    }

    private func remove(_ chunk: ItemID, _ opened: Opened) async throws(VaultError) {
        do throws(APIError) {
            // A chunk is made of its content: whatever its revision, it is this one.
            _ = try await settings.retries({ () throws(APIError) in
                try await api.deleteItem(chunk, .present, opened.token)
            })
        } catch {
            guard [.notFound, .preconditionFailed].contains(error.code) else { throw VaultError(error) }
        }
    }

    /// Whether a manifest of the attachment is here, or was.
    /// - Returns: nil when something does not open.
    private func isKnown(_ attachment: ItemID, _ sealer: Sealer) throws(VaultError) -> Bool? {
        var isKnown: Bool? = false
        try stored {
            try store.forEachContent { id, content in
                guard content.format == SealedBox.format else { return }
                if let opened = try? sealer.open(content, id) {
                    if Attachment(opened.item.body)?.id == attachment, isKnown != nil { isKnown = true }
                } else {
                    isKnown = nil
                }
            }
        }
        return isKnown
    }
}
