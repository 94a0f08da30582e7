internal import Cryptography

/// Chunks that were added while the server was unreachable wait sealed on this device, as edits do.
extension Vault {
    /// Returns the limit that prevents content from waiting here; nil when there is enough room.
    ///
    /// Waiting content of the same attachment does not count. An earlier call has added it, or it is of a version that
    /// this call may replace.
    /// - Parameter byteCount: The length of the content that is still to be added, in pieces of `size` bytes.
    func waitingShortage(
        _ byteCount: Int64, size: Int, of attachment: ItemID
    ) throws(VaultError) -> PlanShortage? {
        let needed = AttachmentSize(of: byteCount, chunkByteCount: size, properties: [:]).chunksByteCount
        let waiting = try stored { try store.waitingChunks() }.filter { $0.attachment != attachment }
            .reduce(0) { $0 + $1.byteCount }
        return PlanShortage(.waitingBytes, needed: needed, free: settings.attachments.waitingByteLimit - waiting)
    }

    /// Stores a piece until the server is reachable.
    /// - Returns: The chunk's name.
    func keepWaiting(
        _ content: SecureBytes, _ draft: AttachmentDraft, _ index: Int
    ) throws(VaultError) -> ItemID {
        let sealer = try open.engine.sealer
        let id = sealer.chunkID(draft.id, index, content)
        if try stored({ try store.isWaiting(id) }) { return id }
        // A chunk on the server that an item on this device names stays on the server.
        if try stored({ try store.chunk(id) }) != nil, try before(draft).named.contains(id) { return id }
        guard let sealed = try? sealer.sealChunk(content, id) else { throw .unreadable }
        try stored {
            try store.keepWaiting(id, sealed.body.bytes, of: draft.id, isDraft: !draft.isResumable)
        }
        return id
    }

    /// Removes waiting content of an attachment, unless an item on this device names it or it is in `kept`.
    func forgetWaiting(of attachment: ItemID, except kept: [ItemID] = []) throws(VaultError) {
        // Another call may be adding it.
        guard attaching[attachment] == nil else { return }
        guard try stored({ try store.waitingChunks() }).contains(where: { $0.attachment == attachment }) else { return }
        let sealer = try open.engine.sealer
        var named = Set(kept)
        let isWhole = try forEachManifest(of: attachment, sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        let (versions, areVersionsWhole) = try chunksOfReplacedVersions(sealer)
        guard isWhole, areVersionsWhole else { return }
        named.formUnion(versions)
        try stored { try store.transaction { try store.forgetWaiting(of: attachment, except: named) } }
    }

    /// Removes waiting content that had no name for 30 days of the store's age.
    func forgetUnnamedWaiting(at age: Int64) throws(VaultError) {
        let waiting = try stored { try store.waitingChunks() }
        let sealer = try open.engine.sealer
        if try mayLackManifests() { return }
        var (named, isWhole) = waiting.isEmpty ? ([], true) : try chunksOfReplacedVersions(sealer)
        for attachment in Set(waiting.map(\.attachment)) {
            let opens = try forEachManifest(of: attachment, sealer) { _, _, manifest in
                named.formUnion(manifest.chunks)
            }
            if !opens { isWhole = false }
        }
        guard isWhole else { return }
        try stored {
            try store.transaction {
                let unnamed = waiting.filter { !named.contains($0.id) && attaching[$0.attachment] == nil }.map(\.id)
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
        for attachment in try stored({ try store.unsettledAttachments() }) where attaching[attachment] == nil {
            try forgetWaiting(of: attachment)
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
