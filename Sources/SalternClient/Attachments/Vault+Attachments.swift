public import Cryptography
internal import Foundation

extension Vault {
    /// Brings an attachment's content to the server, where it is long, and makes its manifest. Put ``Attachment/body()``
    /// in an item afterwards: what no item names is removed some day.
    ///
    /// What was interrupted or cancelled goes on when it is called again with the same id: only what the server does not
    /// have is sent. Content that fits in an item needs no network.
    /// - Parameters:
    ///   - id: That of the version before, when there is one: then only what has changed is sent.
    ///   - progress: Is told after each piece.
    public func attach(
        _ source: AttachmentSource, id: ItemID = .random(), properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(AttachmentError) -> Attachment {
        let size = try await pieceByteCount(for: source.byteCount)
        if source.byteCount <= Int64(size) {
            let content = try Self.read(source, 0, Int(source.byteCount))
            return Attachment(
                id: id, byteCount: source.byteCount, digest: SHA256.hash(content).bytes, properties: properties,
                chunkByteCount: size, chunks: [], inline: content)
        }
        var chunks: [ItemID] = []
        var hash = SHA256.Incremental()
        var offset: Int64 = 0
        while offset < source.byteCount {
            if Task.isCancelled { throw .cancelled }
            let content = try Self.read(source, offset, Int(min(Int64(size), source.byteCount - offset)))
            hash.update(content)
            do throws(VaultError) {
                chunks.append(try await send(content, id, chunks.count))
            } catch {
                throw AttachmentError(error)
            }
            offset += Int64(content.count)
            progress(AttachmentProgress(byteCount: offset, total: source.byteCount))
        }
        return Attachment(
            id: id, byteCount: source.byteCount, digest: hash.finalize().bytes, properties: properties,
            chunkByteCount: size, chunks: chunks, inline: nil)
    }

    /// One piece of the content, of ``Attachment/pieceCount``: fetched when it is long. Who was interrupted goes on with
    /// the piece that is missing.
    public func piece(_ index: Int, of attachment: Attachment) async throws(AttachmentError) -> SecureBytes {
        if let inline = attachment.inline { return inline }
        if Task.isCancelled { throw .cancelled }
        let id = attachment.chunks[index]
        do throws(VaultError) {
            let token = try open.token
            let server = LiveSyncServer(api: api, token: token, retries: settings.retries)
            let state: ItemState?
            do throws(APIError) { state = try await server.item(id) } catch { throw VaultError(error) }
            guard let state, !state.deleted, let content = state.content else {
                try stored { try store.transaction { try store.loseChunk(id) } }
                throw VaultError.notFound
            }
            var opened = try? open.engine.sealer.openChunk(content, id)
            if opened == nil {
                // Another device may have rotated the keys since the last sync.
                try await takeLaterKeyring()
                opened = try? open.engine.sealer.openChunk(content, id)
            }
            // The name is made of the content: nothing else can be in its place.
            guard let opened, opened.count == attachment.byteCount(ofPiece: index),
                try open.engine.sealer.chunkID(attachment.id, index, opened) == id
            else { throw VaultError.unreadable }
            return opened
        } catch {
            switch error {
            case .notFound: throw .missingChunk(id)
            case .unreadable: throw .damagedChunk(id)
            default: throw AttachmentError(error)
            }
        }
    }

    /// The whole content: for what fits in memory.
    public func content(
        of attachment: Attachment, progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(AttachmentError) -> SecureBytes {
        var pieces: [SecureBytes] = []
        var count: Int64 = 0
        for index in 0..<attachment.pieceCount {
            let piece = try await piece(index, of: attachment)
            pieces.append(piece)
            count += Int64(piece.count)
            progress(AttachmentProgress(byteCount: count, total: attachment.byteCount))
        }
        return SecureBytes(count: Int(count)) { buffer in
            var offset = 0
            for piece in pieces {
                piece.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: buffer[offset...].prefix($0.count)).copyMemory(from: $0)
                }
                offset += piece.count
            }
        }
    }

    // MARK: Pieces

    static func read(
        _ source: AttachmentSource, _ offset: Int64, _ count: Int
    ) throws(AttachmentError) -> SecureBytes {
        guard let content = try? source.read(offset, count), content.count == count else { throw .sourceFailed }
        return content
    }

    /// Sends a chunk unless the server has it.
    func send(_ content: SecureBytes, _ attachment: ItemID, _ index: Int) async throws(VaultError) -> ItemID {
        // Nobody changes the keys meanwhile.
        await beginTurn()
        defer { endTurn() }
        let opened = try open
        let sealer = opened.engine.sealer
        let id = sealer.chunkID(attachment, index, content)
        if try stored({ try store.chunk(id) }) != nil { return id }
        guard let sealed = try? sealer.sealChunk(content, id) else { throw .unreadable }
        let state: ItemState
        do throws(APIError) {
            state = try await settings.retries({ () throws(APIError) in
                try await api.putItemBody(id, sealed, .absent, opened.token)
            })
        } catch {
            // It is there: another device of the account has sent it, or a reply was lost.
            guard case .problem(let problem) = error, problem.code == .preconditionFailed,
                let current = problem.current, !current.deleted
            else { throw VaultError(error) }
            state = current
        }
        try stored { try store.noteChunk(id, state.revision, storedAt: state.updatedAt) }
        return id
    }

    /// How long a piece may be: what fits in an item of the plan, with room for a title and a manifest's head.
    private func pieceByteCount(for byteCount: Int64) async throws(AttachmentError) -> Int {
        // So little fits in every plan's item, or in none.
        if byteCount <= 4 << 10 { return Attachment.chunkByteCount }
        let limit: Int64
        do throws(VaultError) {
            limit = try await itemByteLimit(isNeeded: byteCount > Int64(Attachment.chunkByteCount))
        } catch {
            throw AttachmentError(error)
        }
        var size = Attachment.chunkByteCount
        while size >= 1 << 10 {
            if Int64(SealedBox.sealedCount(size + (8 << 10))) <= limit { return size }
            size /= 2
        }
        throw .planTooSmall
    }

    /// What the plan allows in one item, as the server said last. Without network it is what is usual.
    private func itemByteLimit(isNeeded: Bool) async throws(VaultError) -> Int64 {
        let known = try stored { try store.number(.itemBytes) }
        if let known, !isNeeded { return known }
        if isNeeded { return try await learnLimits().itemBytes }
        // Asked for once: what is written without network waits for nothing more than once.
        guard mayAskForLimits else { return .max }
        mayAskForLimits = false
        do throws(VaultError) { return try await learnLimits().itemBytes } catch { return .max }
    }

    func learnLimits() async throws(VaultError) -> AccountDescription.Limits {
        let limits = try await account().limits
        try stored {
            try store.set(.itemBytes, limits.itemBytes)
            try store.set(.deletedDays, Int64(limits.deletedDays))
        }
        return limits
    }
}
