internal import Cryptography

/// Chunks that were added while the server was unreachable. They wait sealed on this device, as edits do. A sync sends
/// them before the items that name them.
final class WaitingChunks {
    private let scope: ItemScope
    private let store: Store
    private let index: ManifestIndex
    private let running: RunningAttachments
    private let copies: ChunkCopies
    private let sender: ChunkSender

    init(
        _ scope: ItemScope, _ index: ManifestIndex, _ running: RunningAttachments, _ copies: ChunkCopies,
        _ sender: ChunkSender
    ) {
        self.scope = scope
        self.index = index
        self.running = running
        self.copies = copies
        self.sender = sender
        store = scope.store
    }

    /// Returns the limit that prevents content from waiting here; nil when there is enough room.
    ///
    /// Waiting content of the same attachment does not count. An earlier call has added it, or it is of a version that
    /// this call may replace.
    /// - Parameter byteCount: The length of the content that is still to be added, in pieces of `size` bytes.
    func shortage(
        _ byteCount: Int64, size: Int, of attachment: ItemID
    ) throws(VaultError) -> PlanShortage? {
        let needed = AttachmentSize(of: byteCount, chunkByteCount: size, properties: [:]).chunksByteCount
        let waiting = try scope.stored { try store.waitingChunks() }.filter { $0.attachment != attachment }
            .reduce(0) { $0 + $1.byteCount }
        return PlanShortage(
            .waitingBytes, needed: needed, free: scope.settings.attachments.waitingByteLimit - waiting)
    }

    /// Stores a piece until the server is reachable.
    /// - Returns: The chunk's name.
    func keep(
        _ content: SecureBytes, _ draft: AttachmentDraft, _ index: Int
    ) throws(VaultError) -> ItemID {
        let sealer = try scope.sealer
        let id = sealer.chunkID(draft.id, index, content)
        if try scope.stored({ try store.isWaiting(id) }) { return id }
        // A chunk on the server that an item on this device names stays on the server.
        if try scope.stored({ try store.chunk(id) }) != nil, try running.before(draft).named.contains(id) {
            return id
        }
        guard let sealed = try? sealer.sealChunk(content, id) else { throw .unreadable }
        try scope.stored {
            try store.keepWaiting(id, sealed.body.bytes, of: draft.id, isDraft: !draft.isResumable)
        }
        return id
    }

    /// Removes waiting content of an attachment, unless an item on this device names it or it is in `kept`.
    func forget(of attachment: ItemID, except kept: [ItemID] = []) throws(VaultError) {
        // Another call may be adding it.
        guard !running.contains(attachment) else { return }
        guard try scope.stored({ try store.waitingChunks() }).contains(where: { $0.attachment == attachment }) else {
            return
        }
        let sealer = try scope.sealer
        var named = Set(kept)
        let isWhole = try index.forEachManifest(of: attachment, sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        let (versions, areVersionsWhole) = try index.chunksOfReplacedVersions(sealer)
        guard isWhole, areVersionsWhole else { return }
        named.formUnion(versions)
        try scope.stored { try store.transaction { try store.forgetWaiting(of: attachment, except: named) } }
    }

    /// Removes waiting content that had no name for 30 days of the store's age.
    func forgetUnnamed(at age: Int64) throws(VaultError) {
        let waiting = try scope.stored { try store.waitingChunks() }
        let sealer = try scope.sealer
        if try index.mayLackManifests() { return }
        var (named, isWhole) = waiting.isEmpty ? ([], true) : try index.chunksOfReplacedVersions(sealer)
        for attachment in Set(waiting.map(\.attachment)) {
            let opens = try index.forEachManifest(of: attachment, sealer) { _, _, manifest in
                named.formUnion(manifest.chunks)
            }
            if !opens { isWhole = false }
        }
        guard isWhole else { return }
        try scope.stored {
            try store.transaction {
                let unnamed = waiting.filter { !named.contains($0.id) && !running.contains($0.attachment) }.map(\.id)
                for id in unnamed { try store.noteUnnamed(id, .waiting, at: age) }
                for (id, since) in try store.unnamedChunks(.waiting) {
                    let isUnnamed = unnamed.contains(id)
                    if isUnnamed && since > age - Store.keptSeconds { continue }
                    try store.forgetUnnamed(id, .waiting)
                    if isUnnamed { try store.forgetContent(id) }
                }
            }
        }
    }

    /// Removes waiting content of calls that ended with their process.
    func forgetUnsettled() throws(VaultError) {
        for attachment in try scope.stored({ try store.unsettledAttachments() }) where !running.contains(attachment) {
            try forget(of: attachment)
        }
    }

    // MARK: Sending

    /// Sends the chunks that present items name. The caller holds the vault's lock.
    ///
    /// Each chunk is recorded when the server has it, so an interrupted sync continues with the next one.
    /// - Returns: True when an item may have become complete.
    func send() async throws(VaultError) -> Bool {
        try sendLostAgain()
        guard try scope.stored({ try store.hasWaitingChunks() }) else { return false }
        let items = try waitingItems()
        let chunks = try scope.stored { try store.waitingChunks() }.filter { items[$0.id] != nil }
        let total = chunks.reduce(0) { $0 + $1.byteCount }
        var sent: Int64 = 0
        var isFull = false
        var hasLearned = false
        for chunk in chunks where !isFull {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            do throws(VaultError) {
                guard try await send(chunk, &hasLearned) else {
                    for item in items[chunk.id] ?? [] { try scope.stored { try store.note(.unreadableChange, item) } }
                    continue
                }
            } catch .refused(let problem) where problem.isAboutMembership {
                // The others would fail for the same reason. The next sync sends them.
                break
            } catch .refused(let problem) {
                isFull = problem.code == .quotaExceeded
                try scope.stored {
                    for item in items[chunk.id] ?? [] {
                        try store.note(isFull ? .quotaExceeded : .refused, item)
                    }
                }
                continue
            }
            sent += chunk.byteCount
            scope.observers.progress.notify(.sentContent(sent, of: total))
        }
        return sent > 0
    }

    /// Returns, for each waiting chunk, the items whose present version names it.
    private func waitingItems() throws(VaultError) -> [ItemID: Set<ItemID>] {
        let sealer = try scope.sealer
        let waiting = try scope.stored { try store.waitingChunks() }
        let ids = Set(waiting.map(\.id))
        var items: [ItemID: Set<ItemID>] = [:]
        for attachment in Set(waiting.map(\.attachment)) {
            _ = try index.forEachManifest(of: attachment, sealer) { item, content, manifest in
                guard try store.current(item) == content else { return }
                for chunk in manifest.chunks where ids.contains(chunk) { items[chunk, default: []].insert(item) }
            }
        }
        return items
    }

    /// - Parameter hasLearned: True when later entries of a vault's log were fetched, which happens once.
    /// - Returns: True when the server has the chunk now.
    private func send(_ chunk: WaitingChunk, _ hasLearned: inout Bool) async throws(VaultError) -> Bool {
        do throws(VaultError) {
            return try await send(chunk)
        } catch .refused(let problem) where problem.isAboutMembership && !hasLearned {
            hasLearned = true
            try await scope.learn()
            return try await send(chunk)
        }
    }

    private func send(_ chunk: WaitingChunk) async throws(VaultError) -> Bool {
        let opened = try scope.open
        guard let content = try content(of: chunk, opened.engine.sealer) else { return false }
        let known = try scope.stored { try store.chunk(chunk.id) }
        // An existing chunk is written again: another device may have sent it, and may take it back at its revision.
        let written = try await sender.write(
            chunk.id, content, known.map { .revision($0.revision) } ?? .absent, nil, opened)
        try scope.stored {
            try store.transaction {
                try store.noteChunk(written.state.id, written.state.revision, storedAt: written.state.updatedAt)
                try store.forgetDraftChunk(chunk.id)
                try store.noteArrived(chunk.id, copyLimit: copies.limit)
            }
        }
        return true
    }

    /// Returns the sealed content of a chunk, in a shared vault under the present key.
    /// - Returns: nil for content that cannot be opened here: it cannot be opened on any device.
    private func content(of chunk: WaitingChunk, _ sealer: any ItemSealing) throws(VaultError) -> ItemContent? {
        guard let content = try scope.stored({ try store.chunkContent(chunk.id) }),
            let plain = try? sealer.openChunk(content, chunk.id)
        else { return nil }
        if !sealer.isOfVault || !sealer.isOutdated(content) { return content }
        guard let sealed = try? sealer.sealChunk(plain, chunk.id) else { return nil }
        try scope.stored { try store.replaceContent(chunk.id, by: sealed.body.bytes) }
        return sealed
    }

    /// Marks copies of chunks that the server has lost, for example by a restore, as waiting.
    private func sendLostAgain() throws(VaultError) {
        guard try scope.stored({ try store.number(.chunksLost) != nil && store.hasCopies() }) else { return }
        let there = Set(try scope.stored { try store.chunks().map(\.id) })
        var lost: [ItemID: ItemID] = [:]
        _ = try index.forEachManifestWithChunks(scope.sealer) { item, content, manifest in
            guard try store.current(item) == content else { return }
            for chunk in manifest.chunks where !there.contains(chunk) { lost[chunk] = manifest.id }
        }
        try scope.stored {
            try store.transaction {
                for (chunk, attachment) in lost { try store.sendAgain(chunk, of: attachment) }
                try store.set(.chunksLost, nil)
            }
        }
    }
}

extension VaultError {
    /// True when the server is unreachable, or has no session for this device. Content then waits.
    var isAbsence: Bool {
        switch self {
        case .sessionEnded: true
        case .unavailable(.transport(.cancelled)): false
        case .unavailable: true
        default: false
        }
    }
}
