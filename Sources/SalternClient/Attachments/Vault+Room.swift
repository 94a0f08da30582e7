internal import Cryptography

/// Whether there is room for an attachment is known before its first chunk is sent: chunks that nothing names take the room
/// of everything else.
extension Vault {
    /// What is left of the plan, as the server says now.
    func room() async throws(VaultError) -> PlanRoom { PlanRoom(try await account()) }

    /// How long a piece may be: what fits in an item of the plan, with room for a title and a manifest's head.
    /// - Parameter mayWait: Whether content may wait on this device when the server cannot be reached.
    /// - Returns: Also what is left of the plan, for content that has more than one piece; nil when the server cannot be
    ///   reached.
    func pieces(
        of byteCount: Int64, mayWait: Bool
    ) async throws(VaultError) -> (size: Int, room: PlanRoom?) {
        // So little fits in every plan's item, or in none.
        if byteCount <= 4 << 10 { return (Attachment.chunkByteCount, nil) }
        if byteCount <= Int64(Attachment.chunkByteCount),
            let size = try? Self.pieceByteCount(try await itemByteLimit()), byteCount <= Int64(size)
        {
            return (size, nil)
        }
        let room: PlanRoom
        do throws(VaultError) {
            room = try await self.room()
        } catch {
            guard mayWait, settings.attachments.waitingByteLimit > 0, error.isAbsence, !Task.isCancelled else {
                throw error
            }
            // As the server said last, or what every plan allows that was seen so far.
            let limit = try stored { try store.number(.itemBytes) } ?? .max
            return (try Self.pieceByteCount(limit), nil)
        }
        return (try Self.pieceByteCount(room.itemBytes), room)
    }

    private static func pieceByteCount(_ limit: Int64) throws(VaultError) -> Int {
        var size = Attachment.chunkByteCount
        while true {
            let needed = Int64(SealedBox.sealedCount(size + (8 << 10)))
            guard let shortage = PlanShortage(.itemBytes, needed: needed, free: limit) else { return size }
            size /= 2
            if size < 1 << 10 { throw .noRoom(shortage) }
        }
    }

    /// What the plan allows in one item, as the server said last. Without network it is what is usual.
    func itemByteLimit() async throws(VaultError) -> Int64 {
        if let known = try stored({ try store.number(.itemBytes) }) { return known }
        // Asked for once: what is written without network waits for nothing more than once.
        guard mayAskForLimits else { return .max }
        mayAskForLimits = false
        guard let account = try? await api.getAccount(open.token) else { return .max }
        try note(account.limits)
        return account.limits.itemBytes
    }

    /// - Throws: ``VaultError/noRoom(_:)``
    func refuse(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int, _ room: PlanRoom,
        _ properties: [String: String]
    ) async throws(VaultError) {
        let new = AttachmentSize(of: source.byteCount, chunkByteCount: size, properties: properties)
        if room.shortage(new) == nil { return }
        var left = room
        let whole = new.replacing(try before(draft).manifestByteCount)
        guard let shortage = room.shortage(whole) else { return }
        if try !stored({ try store.abandonedDrafts() }).isEmpty {
            try await takeBackAbandoned()
            left = try await self.room()
            if left.shortage(whole) == nil { return }
        }
        let there = !draft.isResumable ? 0 : try stored { try store.chunkCount() }
        // Also if all that is there were of this one: then nothing has to be read.
        if left.shortage(whole.without(there, of: size)) != nil { throw .noRoom(left.shortage(whole) ?? shortage) }
        let missing = try await missing(source, draft, size, properties)
        if let shortage = left.shortage(missing) { throw .noRoom(shortage) }
    }

    /// Why the plan did not have the room that it seemed to have: somebody else has taken it meanwhile.
    func reason(
        _ error: VaultError, _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int,
        _ properties: [String: String]
    ) async -> VaultError {
        guard let missing = try? await missing(source, draft, size, properties), let room = try? await room(),
            let shortage = room.shortage(missing)
        else { return error }
        return .noRoom(shortage)
    }

    /// What the server does not have of the content, as far as is known here.
    private func missing(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int, _ properties: [String: String]
    ) async throws(VaultError) -> AttachmentSize {
        let count = Attachment.chunkCount(of: source.byteCount, each: size)
        var missing = AttachmentSize(chunkCount: count, properties: properties)
        missing = missing.replacing(try before(draft).manifestByteCount)
        for index in 0..<Int(count) {
            if Task.isCancelled { throw .cancelled }
            let offset = Int64(index) * Int64(size)
            let content = try Self.read(source, offset, Int(min(Int64(size), source.byteCount - offset)))
            let id = try open.engine.sealer.chunkID(draft.id, index, content)
            if try stored({ try store.chunk(id) }) == nil { missing.add(content.count) }
            // Others have a turn between two pieces.
            await Task.yield()
        }
        return missing
    }
}
