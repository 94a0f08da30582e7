internal import Foundation

extension Vault {
    /// Removes chunks that nothing names any more: no item, none in the trash, nothing unsent and nothing that it was
    /// changed from, for as long as a deleted item can be restored, here or on the server.
    ///
    /// Where one item does not open, nothing is removed: it may be a manifest.
    /// - Returns: How many were removed.
    @discardableResult
    public func sweepChunks() async throws(VaultError) -> Int {
        // By the server's clock as it answers below.
        try await sweepChunks(at: settings.now(), age: nil)
    }

    /// - Parameter age: The age of the store; nil for the one that the server's clock confirms.
    func sweepChunks(at moment: Date, age: Int64?) async throws(VaultError) -> Int {
        try await sweep(at: moment, age: age).count
    }

    /// Sweeps once a day of the store's age, where there are chunks.
    /// - Parameter age: The age of the store; nil when no clock confirms it, and then nothing is due.
    /// - Returns: The report of the sweep's own round; nil when nothing was due or it failed.
    func sweepWhenDue(at moment: Date, age: Int64?) async -> SyncReport? {
        guard let age, let hasChunks = try? store.hasChunks(), hasChunks else { return nil }
        do {
            if let before = try store.number(.sweptAt), age - before < 86_400 { return nil }
            try store.set(.sweptAt, age)
            return try await sweep(at: moment, age: age).report
        } catch {
            return nil
        }
    }

    private func sweep(at moment: Date, age: Int64?) async throws(VaultError) -> (count: Int, report: SyncReport) {
        try await takeBackAbandoned()
        guard try stored({ try store.hasChunks() }) else { return (0, SyncReport()) }
        // A plan has ten years at most; a server may answer with any number.
        let days = min(max(try await account().limits.deletedDays, 30), 3_650)
        let end = moment.addingTimeInterval(-Double(days) * 86_400)
        await beginTurn()
        defer { endTurn() }
        // A manifest that another device has put meanwhile is here before anything is decided.
        let report = try await round()
        guard report.isHeld == false else { throw .deletionsHeld }
        let opened = try open
        let (named, isWhole) = try namedChunks(opened.engine.sealer)
        let confirmed = age == nil ? try confirmedAge() : age
        guard isWhole, let age = confirmed else { return (0, report) }
        let unnamed = try stored {
            try store.transaction {
                for chunk in try store.chunks() {
                    if named.contains(chunk.id) {
                        try store.forgetDraftChunk(chunk.id)
                        try store.forgetUnnamed(chunk.id)
                    } else {
                        try store.noteUnnamed(chunk.id, at: age)
                    }
                }
                let since = try store.unnamedChunks()
                for id in since.keys where try store.chunk(id) == nil { try store.forgetUnnamed(id) }
                let last = age - Int64(days) * 86_400
                return try store.chunks().filter { chunk in
                    guard let since = since[chunk.id] else { return false }
                    return since <= last && chunk.storedAt <= end
                }
            }
        }
        var count = 0
        for chunk in unnamed {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            // An attachment that is made meanwhile may want it.
            guard try stored({ try store.chunk(chunk.id) }) == chunk else { continue }
            do throws(APIError) {
                _ = try await settings.retries({ () throws(APIError) in
                    try await api.deleteItem(chunk.id, .revision(chunk.revision), opened.token)
                })
                count += 1
            } catch {
                // Gone, or written anew since.
                guard [.notFound, .preconditionFailed].contains(error.code) else { throw VaultError(error) }
                continue
            }
            try stored {
                try store.forgetChunk(chunk.id)
                try store.forgetUnnamed(chunk.id)
                try store.forgetDraftChunk(chunk.id)
            }
        }
        return (count, report)
    }

    /// The chunks that manifests here name.
    /// - Returns: Also whether everything opens: what does not may name any.
    func namedChunks(_ sealer: Sealer) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var named: Set<ItemID> = []
        var isWhole = true
        try stored {
            try store.forEachContent { id, content in
                guard content.format == SealedBox.format else { return }
                if let opened = try? sealer.open(content, id) {
                    let attachments = Attachment.all(in: opened.item.body)
                    for manifest in attachments.found { named.formUnion(manifest.chunks) }
                    if !attachments.isWhole { isWhole = false }
                } else {
                    isWhole = false
                }
            }
        }
        return (named, isWhole)
    }
}
