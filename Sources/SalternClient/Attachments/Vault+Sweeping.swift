internal import Foundation

extension Vault {
    /// Removes chunks that nothing names any more: no item, none in the trash, nothing unsent and nothing that it was
    /// changed from, for as long as a deleted item can be restored, here or on the server.
    ///
    /// Where one item does not open, nothing is removed: it may be a manifest.
    /// - Returns: How many were removed.
    @discardableResult
    public func sweepChunks() async throws(VaultError) -> Int { try await sweepChunks(at: Date()) }

    func sweepChunks(at moment: Date) async throws(VaultError) -> Int {
        try await sweepChunks(at: moment, notAfter: moment).count
    }

    /// Sweeps once a day, where there are chunks. One reading of the clock removes nothing for good: a chunk goes when the
    /// sweep before has found it old enough, too.
    /// - Returns: What its round has changed here; nil when nothing was due or it failed.
    func sweepWhenDue(at moment: Date) async -> SyncReport? {
        let day: TimeInterval = 86_400
        guard let hasChunks = try? store.hasChunks(), hasChunks else { return nil }
        let before = (try? store.number(.sweptAt)).flatMap(\.self).map { Date(timeIntervalSince1970: Double($0)) }
        if let before, abs(moment.timeIntervalSince(before)) < day { return nil }
        do {
            if let before, moment.timeIntervalSince(before) > 60 * day {
                // The clock was wrong then, or is now: what was noted by it counts from today.
                try store.transaction {
                    for chunk in try store.chunks() where chunk.unnamedSince != nil {
                        try store.setUnnamed(chunk.id, since: moment)
                    }
                }
            }
            try store.set(.sweptAt, Int64(moment.timeIntervalSince1970))
            return try await sweepChunks(at: moment, notAfter: before ?? .distantPast).report
        } catch {
            return nil
        }
    }

    /// - Parameter limit: What was not due by then stays.
    private func sweepChunks(
        at moment: Date, notAfter limit: Date
    ) async throws(VaultError) -> (count: Int, report: SyncReport) {
        try await takeBackAbandoned()
        guard try stored({ try store.hasChunks() }) else { return (0, SyncReport()) }
        let days = max(try await account().limits.deletedDays, 30)
        let end = min(moment, limit).addingTimeInterval(-Double(days) * 86_400)
        await beginTurn()
        defer { endTurn() }
        // A manifest that another device has put meanwhile is here before anything is decided.
        let report = try await round()
        guard report.isHeld == false else { throw .deletionsHeld }
        let opened = try open
        let (named, isWhole) = try namedChunks(opened.engine.sealer)
        guard isWhole else { return (0, report) }
        let unnamed = try stored {
            try store.transaction {
                for chunk in try store.chunks() {
                    if named.contains(chunk.id) {
                        try store.forgetDraftChunk(chunk.id)
                        if chunk.unnamedSince != nil { try store.setUnnamed(chunk.id, since: nil) }
                    } else if chunk.unnamedSince == nil {
                        try store.setUnnamed(chunk.id, since: moment)
                    }
                }
                return try store.chunks().filter { chunk in
                    guard let since = chunk.unnamedSince else { return false }
                    return since <= end && chunk.storedAt <= end
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
