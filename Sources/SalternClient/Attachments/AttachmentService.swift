internal import Cryptography
internal import Foundation

/// The attachments of a vault.
///
/// It checks the room for an attachment before the first chunk is sent. Chunks that no item names would use room of the
/// plan.
final class AttachmentService {
    let running: RunningAttachments
    let index: ManifestIndex
    let copies: ChunkCopies
    let sender: ChunkSender
    let waiting: WaitingChunks
    let abandoned: AbandonedChunks
    let reader: AttachmentReader
    let sweeper: ChunkSweeper
    /// Called before each piece of an attachment is sent, when nothing else uses the store.
    var beforePiece: (() async throws(VaultError) -> Void)?
    private let scope: ItemScope
    private let store: Store
    private let plan: PlanLimits

    init(_ scope: ItemScope, _ plan: PlanLimits) {
        self.scope = scope
        self.plan = plan
        store = scope.store
        index = ManifestIndex(scope)
        running = RunningAttachments(scope, index)
        copies = ChunkCopies(scope)
        sender = ChunkSender(scope, running, copies)
        waiting = WaitingChunks(scope, index, running, copies, sender)
        abandoned = AbandonedChunks(scope, index, running, sender, waiting)
        reader = AttachmentReader(scope, copies, sender)
        sweeper = ChunkSweeper(scope, plan, index, waiting, abandoned)
    }

    /// Creates an attachment's manifest, and sends long content to the server.
    func attach(
        _ source: AttachmentSource, _ draft: AttachmentDraft, properties: [String: String],
        progress: @Sendable (AttachmentProgress) -> Void
    ) async throws(VaultError) -> Attachment {
        var draft = draft
        if source.byteCount > scope.settings.attachments.copiedByteLimit { draft.keepsCopies = false }
        let (size, room) = try await pieces(of: source.byteCount, mayWait: draft.keepsContent)
        guard source.byteCount > Int64(size) else {
            let content = try source.piece(0, Int(source.byteCount))
            return Attachment(
                id: draft.id, byteCount: source.byteCount, digest: SHA256.hash(content).bytes, properties: properties,
                chunkByteCount: size, chunks: [], inline: content)
        }
        try running.begin(draft)
        let chunks: [ItemID]
        let digest: [UInt8]
        do throws(VaultError) {
            defer { running.end(draft) }
            if let room { try await refuse(source, draft, size, room, properties) }
            (chunks, digest) = try await add(source, draft, size, isAway: room == nil, progress)
        } catch {
            if !draft.isResumable || error.isForWantOfRoom { await abandoned.giveUp(draft) }
            throw error.isRefusalForWantOfRoom ? await reason(error, source, draft, size, properties) : error
        }
        await abandoned.settle(draft, chunks)
        return Attachment(
            id: draft.id, byteCount: source.byteCount, digest: digest, properties: properties, chunkByteCount: size,
            chunks: chunks, inline: nil)
    }

    /// Sends the content piece by piece. Pieces that cannot be sent wait on this device.
    /// - Parameter isAway: True when the server was unreachable before.
    private func add(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int, isAway: Bool,
        _ progress: @Sendable (AttachmentProgress) -> Void
    ) async throws(VaultError) -> (chunks: [ItemID], digest: [UInt8]) {
        var isAway = isAway
        if isAway { try checkWaitingRoom(source.byteCount, size, draft, else: nil) }
        var chunks: [ItemID] = []
        var hash = SHA256.Incremental()
        var offset: Int64 = 0
        while offset < source.byteCount {
            if Task.isCancelled { throw .cancelled }
            try await beforePiece?()
            let content = try source.piece(offset, Int(min(Int64(size), source.byteCount - offset)))
            hash.update(content)
            if !isAway {
                do throws(VaultError) {
                    chunks.append(try await sender.send(content, draft.id, chunks.count, draft))
                } catch {
                    guard draft.keepsContent, error.isAbsence, !Task.isCancelled else { throw error }
                    try checkWaitingRoom(source.byteCount - offset, size, draft, else: error)
                    isAway = true
                }
            }
            if isAway {
                chunks.append(try waiting.keep(content, draft, chunks.count))
                // Lets other calls run between two pieces.
                await Task.yield()
            }
            offset += Int64(content.count)
            progress(AttachmentProgress(byteCount: offset, total: source.byteCount))
        }
        return (chunks, hash.finalize().bytes)
    }

    /// Throws when the rest of the content has no room to wait.
    /// - Parameter cause: The error to throw, which is why the rest has to wait; nil to throw the shortage itself.
    private func checkWaitingRoom(
        _ byteCount: Int64, _ size: Int, _ draft: AttachmentDraft, else cause: VaultError?
    ) throws(VaultError) {
        guard let shortage = try waiting.shortage(byteCount, size: size, of: draft.id) else { return }
        throw cause ?? .noRoom(shortage)
    }

    // MARK: Room

    /// Returns the length of a piece that fits in an item of the plan, beside a title and a manifest's head.
    /// - Parameter mayWait: True when content may wait on this device while the server is unreachable.
    /// - Returns: Also the unused part of the plan, for content with more than one piece; nil when the server is
    ///   unreachable.
    private func pieces(
        of byteCount: Int64, mayWait: Bool
    ) async throws(VaultError) -> (size: Int, room: PlanRoom?) {
        // So little content fits in every plan's item, or in none.
        if byteCount <= 4 << 10 { return (Attachment.chunkByteCount, nil) }
        if byteCount <= Int64(Attachment.chunkByteCount),
            let size = try? Self.pieceByteCount(try await plan.itemByteLimit()), byteCount <= Int64(size)
        {
            return (size, nil)
        }
        let room: PlanRoom
        do throws(VaultError) {
            room = try await plan.room()
        } catch {
            guard mayWait, scope.settings.attachments.waitingByteLimit > 0, error.isAbsence, !Task.isCancelled else {
                throw error
            }
            // The last limit from the server; no limit when none was received.
            let limit = try scope.stored { try store.number(.itemBytes) } ?? .max
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

    /// Throws when the plan has no room for the attachment.
    /// - Throws: ``VaultError/noRoom(_:)``
    private func refuse(
        _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int, _ room: PlanRoom,
        _ properties: [String: String]
    ) async throws(VaultError) {
        let new = AttachmentSize(of: source.byteCount, chunkByteCount: size, properties: properties)
        if room.shortage(new) == nil { return }
        var left = room
        let whole = new.replacing(try running.before(draft).manifestByteCount)
        guard let shortage = room.shortage(whole) else { return }
        if try !scope.stored({ try store.abandonedDrafts() }).isEmpty {
            try await abandoned.takeAllBack()
            left = try await plan.room()
            if left.shortage(whole) == nil { return }
        }
        let there = !draft.isResumable ? 0 : try scope.stored { try store.chunkCount() }
        // Even if all stored chunks belonged to this attachment. Then no content has to be read.
        if left.shortage(whole.without(there, of: size)) != nil { throw .noRoom(left.shortage(whole) ?? shortage) }
        let missing = try await missing(source, draft, size, properties)
        if let shortage = left.shortage(missing) { throw .noRoom(shortage) }
    }

    /// Returns the reason why the plan is full although the check passed: another device has used the room since.
    private func reason(
        _ error: VaultError, _ source: AttachmentSource, _ draft: AttachmentDraft, _ size: Int,
        _ properties: [String: String]
    ) async -> VaultError {
        guard let missing = try? await missing(source, draft, size, properties), let room = try? await plan.room(),
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
        missing = missing.replacing(try running.before(draft).manifestByteCount)
        for index in 0..<Int(count) {
            if Task.isCancelled { throw .cancelled }
            let offset = Int64(index) * Int64(size)
            let content = try source.piece(offset, Int(min(Int64(size), source.byteCount - offset)))
            let id = try scope.sealer.chunkID(draft.id, index, content)
            if try scope.stored({ try store.chunk(id) }) == nil { missing.add(content.count) }
            // Lets other calls run between two pieces.
            await Task.yield()
        }
        return missing
    }

    // MARK: Lost chunks

    /// Returns the manifests with missing chunks on the server. It searches only after a missing chunk was
    /// noticed.
    func lackingChunks() throws(VaultError) -> [Attachment] {
        guard try scope.stored({ try store.number(.chunksWhole) }) == nil else { return [] }
        let sealer = try scope.sealer
        let there = Set(try scope.stored { try store.chunks().map(\.id) })
        let (lacking, isWhole) = try index.manifests(lackingChunksOf: there, sealer)
        if lacking.isEmpty && isWhole { try scope.stored { try store.set(.chunksWhole, 1) } }
        return lacking
    }

    /// Sends the missing chunks of a manifest.
    /// - Parameter source: The manifest's content. At the first piece that differs, sending ends.
    /// - Throws: ``VaultError/noRoom(_:)`` when the plan has no room for the remaining chunks.
    func supply(_ attachment: Attachment, from source: AttachmentSource) async throws(VaultError) {
        guard source.byteCount == attachment.byteCount else { return }
        for (index, id) in attachment.chunks.enumerated() {
            if Task.isCancelled { throw .cancelled }
            guard try scope.stored({ try store.chunk(id) }) == nil else { continue }
            let offset = Int64(index) * Int64(attachment.chunkByteCount)
            let content = try source.piece(offset, attachment.byteCount(ofPiece: index))
            do throws(VaultError) {
                guard try scope.sealer.isChunkID(id, attachment.id, index, content) else { return }
                _ = try await sender.send(content, attachment.id, index)
            } catch {
                let failure = error
                throw failure.isForWantOfRoom ? await shortage(of: attachment) ?? failure : failure
            }
        }
    }

    /// Returns the limit that the missing chunks exceed; nil when it cannot be determined.
    private func shortage(of attachment: Attachment) async -> VaultError? {
        guard let room = try? await plan.room(), let there = try? scope.stored({ Set(try store.chunks().map(\.id)) })
        else {
            return nil
        }
        var missing = AttachmentSize(chunkCount: 0, properties: [:])
        // The server has its manifest.
        missing = missing.replacing(missing.manifestByteCount)
        for (index, id) in attachment.chunks.enumerated() where !there.contains(id) {
            missing.add(attachment.byteCount(ofPiece: index))
        }
        return room.shortage(missing).map { .noRoom($0) }
    }
}
