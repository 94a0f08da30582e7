internal import Cryptography

/// Chunks that wait on this device are sent by a sync, before the items that name them.
extension Vault {
    /// Sends the chunks that present items name. For the turn's holder.
    ///
    /// Each chunk is noted when the server has it, so a sync that was interrupted goes on with the next one.
    /// - Returns: Whether an item may have become complete.
    func sendWaiting() async throws(VaultError) -> Bool {
        try sendLostAgain()
        guard try stored({ try store.hasWaitingChunks() }) else { return false }
        let items = try itemsWaitingForChunks()
        let chunks = try stored { try store.waitingChunks() }.filter { items[$0.id] != nil }
        let total = chunks.reduce(0) { $0 + $1.byteCount }
        var sent: Int64 = 0
        var isFull = false
        for chunk in chunks where !isFull {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            do throws(VaultError) {
                guard try await send(chunk) else {
                    for item in items[chunk.id] ?? [] { try stored { try store.note(.unreadableChange, item) } }
                    continue
                }
            } catch .refused(let problem) {
                isFull = problem.code == .quotaExceeded
                try stored {
                    for item in items[chunk.id] ?? [] {
                        try store.note(isFull ? .quotaExceeded : .refused, item)
                    }
                }
                continue
            }
            sent += chunk.byteCount
            progressObservers.notify(.sentContent(sent, of: total))
        }
        return sent > 0
    }

    /// The items whose present version names chunks that wait, by chunk.
    private func itemsWaitingForChunks() throws(VaultError) -> [ItemID: Set<ItemID>] {
        let sealer = try open.engine.sealer
        let waiting = try stored { try store.waitingChunks() }
        let ids = Set(waiting.map(\.id))
        var items: [ItemID: Set<ItemID>] = [:]
        for attachment in Set(waiting.map(\.attachment)) {
            _ = try forEachManifest(of: attachment, sealer) { item, content, manifest in
                guard try store.current(item) == content else { return }
                for chunk in manifest.chunks where ids.contains(chunk) { items[chunk, default: []].insert(item) }
            }
        }
        return items
    }

    /// - Returns: Whether the server has it now.
    private func send(_ chunk: WaitingChunk) async throws(VaultError) -> Bool {
        let opened = try open
        guard let content = try stored({ try store.chunkContent(chunk.id) }),
            // What does not open here opens nowhere.
            (try? opened.engine.sealer.openChunk(content, chunk.id)) != nil
        else { return false }
        let known = try stored { try store.chunk(chunk.id) }
        // Also what is there: another device may have sent it, and may take it back as it has sent it.
        let written = try await write(
            chunk.id, content, known.map { .revision($0.revision) } ?? .absent, nil, opened)
        try stored {
            try store.transaction {
                try store.noteChunk(written.state.id, written.state.revision, storedAt: written.state.updatedAt)
                try store.forgetDraftChunk(chunk.id)
                try store.noteArrived(chunk.id, copyLimit: settings.attachments.copiedByteLimit)
            }
        }
        return true
    }

    /// What the server has lost, as by a restore, is sent again from the copies of this device.
    private func sendLostAgain() throws(VaultError) {
        guard try stored({ try store.number(.chunksLost) != nil && store.hasCopies() }) else { return }
        let there = Set(try stored { try store.chunks().map(\.id) })
        var lost: [ItemID: ItemID] = [:]
        _ = try forEachManifestWithChunks(open.engine.sealer) { item, content, manifest in
            guard try store.current(item) == content else { return }
            for chunk in manifest.chunks where !there.contains(chunk) { lost[chunk] = manifest.id }
        }
        try stored {
            try store.transaction {
                for (chunk, attachment) in lost { try store.sendAgain(chunk, of: attachment) }
                try store.set(.chunksLost, nil)
            }
        }
    }
}

extension SyncEngine {
    /// Returns whether a change names chunks that the server does not have yet. It is sent after them.
    func waitsForChunks(_ change: LocalChange) throws -> Bool {
        guard let content = change.content, try store.hasWaitingChunks(),
            let opened = try? sealer.open(content, change.id)
        else { return false }
        return try Attachment.all(in: opened.item.body).found.contains { attachment in
            try attachment.chunks.contains { try store.isWaiting($0) }
        }
    }
}
