internal import Foundation

/// Removes the chunks of deleted attachments from the server.
final class ChunkSweeper {
    private let session: VaultSession
    private let store: Store
    private let plan: PlanLimits
    private let index: ManifestIndex
    private let waiting: WaitingChunks
    private let abandoned: AbandonedChunks

    init(
        _ session: VaultSession, _ plan: PlanLimits, _ index: ManifestIndex, _ waiting: WaitingChunks,
        _ abandoned: AbandonedChunks
    ) {
        self.session = session
        self.plan = plan
        self.index = index
        self.waiting = waiting
        self.abandoned = abandoned
        store = session.store
    }

    /// The largest number of chunks that a sync removes.
    static let sweepLimit = 200

    /// Sweeps once a day of the store's age, if the store has chunks. When more chunks are due than one sync removes,
    /// the next sync continues.
    /// - Parameters:
    ///   - age: The age of the store; nil when no clock confirms it, and then no sweep is due.
    ///   - round: Fetches the changes of other devices.
    /// - Returns: The report of the sweep's own round; nil when no sweep was due or it failed.
    func sweepWhenDue(
        at moment: Date, age: Int64?, after round: () async throws(VaultError) -> SyncReport
    ) async -> SyncReport? {
        guard let age else { return nil }
        do {
            guard try store.hasChunks() || store.hasWaitingChunks() else { return nil }
            if let before = try store.number(.sweptAt), age - before < 86_400 { return nil }
            try store.set(.sweptAt, age)
            try waiting.forgetUnnamed(at: age)
            let (count, report) = try await sweep(at: moment, age: age, limit: Self.sweepLimit, after: round)
            if count >= Self.sweepLimit { try store.set(.sweptAt, nil) }
            return report
        } catch {
            return nil
        }
    }

    /// Removes chunks that no item names.
    /// - Parameters:
    ///   - age: The age of the store; nil for the one that the server's clock confirms.
    ///   - limit: The largest number of chunks to remove.
    ///   - round: Fetches the changes of other devices. The caller of it holds the lock.
    func sweep(
        at moment: Date, age: Int64?, limit: Int = .max, after round: () async throws(VaultError) -> SyncReport
    ) async throws(VaultError) -> (count: Int, report: SyncReport) {
        try await abandoned.takeAllBack()
        guard try session.stored({ try store.hasChunks() }) else { return (0, SyncReport()) }
        // A plan has ten years at most; a hostile server may return any number.
        let days = Int64(min(max(try await plan.account().limits.deletedDays, 30), 3_650))
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        // Fetches manifests that other devices have put since, before a decision.
        let report = try await round()
        guard report.isHeld == false else { throw .deletionsHeld }
        let opened = try session.open
        let confirmed = age == nil ? try session.confirmedAge() : age
        guard let age = confirmed else { return (0, report) }
        let end = moment.addingTimeInterval(-Double(days) * 86_400)
        let unnamed = try unnamedChunks(at: age, days: days, storedUntil: end, opened.engine.sealer)
        var count = 0
        for chunk in unnamed where count < limit {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            // An attachment that is created at the same time may use it.
            guard try session.stored({ try store.chunk(chunk.id) }) == chunk else { continue }
            do throws(APIError) {
                _ = try await session.syncRetries({ () throws(APIError) in
                    try await session.api.deleteItem(chunk.id, .revision(chunk.revision), opened.token)
                })
                count += 1
            } catch {
                // The chunk was deleted or written again since.
                guard [.notFound, .preconditionFailed].contains(error.code) else { throw VaultError(error) }
                continue
            }
            try session.stored {
                try store.forgetChunk(chunk.id)
                try store.forgetUnnamed(chunk.id)
                try store.forgetDraftChunk(chunk.id)
            }
        }
        return (count, report)
    }

    /// Records the chunks without a name, and returns those that have had none for this number of days.
    /// - Parameter end: Chunks that the server stored later are excluded.
    private func unnamedChunks(
        at age: Int64, days: Int64, storedUntil end: Date, _ sealer: Sealer
    ) throws(VaultError) -> [StoredChunk] {
        try session.stored { try store.removeAgedVersions(at: age) }
        let (indexed, isIndexWhole) = try index.indexedChunks(sealer)
        guard isIndexWhole, try !session.stored({ try store.hasItemsBehind() }) else { return [] }
        let due = try noteUnnamed(except: indexed, at: age, days: days).filter { $0.storedAt <= end }
        if due.isEmpty { return [] }
        // A removed chunk is lost for all devices. Therefore all content is opened instead of using the index.
        let (named, isWhole) = try index.namedChunks(sealer)
        guard isWhole else { return [] }
        let (kept, areVersionsWhole) = try index.chunksOfReplacedVersions(sealer)
        guard areVersionsWhole else { return [] }
        try session.stored {
            try store.transaction {
                for chunk in due where named.contains(chunk.id) { try store.forgetUnnamed(chunk.id) }
            }
        }
        return due.filter { !named.contains($0.id) && !kept.contains($0.id) }
    }

    /// - Returns: The chunks that have had no name for this number of days.
    private func noteUnnamed(
        except named: Set<ItemID>, at age: Int64, days: Int64
    ) throws(VaultError) -> [StoredChunk] {
        try session.stored {
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
                let last = age - days * 86_400
                return try store.chunks().filter { chunk in since[chunk.id].map { $0 <= last } ?? false }
            }
        }
    }
}
