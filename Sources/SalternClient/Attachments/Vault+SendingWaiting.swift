internal import Cryptography

/// A sync sends waiting chunks before the items that name them.
extension Vault {
    /// Sends the chunks that present items name. The caller holds the vault's lock.
    ///
    /// Each chunk is recorded when the server has it, so an interrupted sync continues with the next one.
    /// - Returns: True when an item may have become complete.
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

    /// Returns, for each waiting chunk, the items whose present version names it.
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

    /// - Returns: True when the server has the chunk now.
    private func send(_ chunk: WaitingChunk) async throws(VaultError) -> Bool {
        let opened = try open
        guard let content = try stored({ try store.chunkContent(chunk.id) }),
            // Content that cannot be opened here cannot be opened on any device.
            (try? opened.engine.sealer.openChunk(content, chunk.id)) != nil
        else { return false }
        let known = try stored { try store.chunk(chunk.id) }
        // An existing chunk is written again: another device may have sent it, and may take it back at its revision.
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

    /// Marks copies of chunks that the server has lost, for example by a restore, as waiting.
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
    /// Returns true when a change names chunks that the server does not have yet. It is sent after them.
    func waitsForChunks(_ change: LocalChange) throws -> Bool {
        guard let content = change.content, try store.hasWaitingChunks(),
            let opened = try? sealer.open(content, change.id)
        else { return false }
        return try Attachment.all(in: opened.item.body).found.contains { attachment in
            try attachment.chunks.contains { try store.isWaiting($0) }
        }
    }
}
