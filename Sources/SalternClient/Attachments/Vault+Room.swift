internal import Cryptography

/// The room for an attachment is checked before its first chunk is sent. Chunks that no item names would use room of
/// the plan.
extension Vault {
    /// Fetches the unused part of the plan.
    func room() async throws(VaultError) -> PlanRoom { PlanRoom(try await account()) }

    /// Returns the length of a piece that fits in an item of the plan, beside a title and a manifest's head.
    /// - Parameter mayWait: True when content may wait on this device while the server is unreachable.
    /// - Returns: Also the unused part of the plan, for content with more than one piece; nil when the server is
    ///   unreachable.
    func pieces(
        of byteCount: Int64, mayWait: Bool
    ) async throws(VaultError) -> (size: Int, room: PlanRoom?) {
        // So little content fits in every plan's item, or in none.
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
            // The last limit from the server; no limit when none was received.
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

    /// Returns the last limit of one item that the server returned. Without network there is no limit.
    func itemByteLimit() async throws(VaultError) -> Int64 {
        if let known = try stored({ try store.number(.itemBytes) }) { return known }
        // Requested once, so that writes without network wait at most once.
        guard mayAskForLimits else { return .max }
        mayAskForLimits = false
        guard let account = try? await api.getAccount(open.token) else { return .max }
        try note(account.limits)
        return account.limits.itemBytes
    }

    /// Throws when the plan has no room for the attachment.
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
        // Even if all stored chunks belonged to this attachment. Then no content has to be read.
        if left.shortage(whole.without(there, of: size)) != nil { throw .noRoom(left.shortage(whole) ?? shortage) }
        let missing = try await missing(source, draft, size, properties)
        if let shortage = left.shortage(missing) { throw .noRoom(shortage) }
    }

    /// Returns the reason why the plan is full although the check passed: another device has used the room since.
    func reason(
        _ error: VaultError, _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int,
        _ properties: [String: String]
    ) async -> VaultError {
        guard let missing = try? await missing(source, draft, size, properties), let room = try? await room(),
            let shortage = room.shortage(missing)
        else { return error }
        return .noRoom(shortage)
    }

    /// Returns the size of the content that the server does not have, according to the store.
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
            // Lets other calls run between two pieces.
            await Task.yield()
        }
        return missing
    }
}
