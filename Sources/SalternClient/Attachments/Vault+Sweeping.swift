internal import Foundation

extension Vault {
    /// Removes chunks that no item, deleted item in the trash, unsent change, base of a change or replaced version
    /// names. A chunk is removed after it had no name for as long as a deleted item can be restored, here or on the
    /// server.
    ///
    /// While any item on this device or on the server cannot be read, no chunk is removed: the item may be a manifest.
    ///
    /// ```swift
    /// let count = try await vault.sweepChunks()
    /// print("removed \(count) chunks")
    /// ```
    /// - Returns: The number of removed chunks.
    @discardableResult
    public func sweepChunks() async throws(VaultError) -> Int {
        // The age is that of the server's clock in the reply below.
        try await sweepChunks(at: settings.now(), age: nil)
    }

    /// - Parameter age: The age of the store; nil for the one that the server's clock confirms.
    func sweepChunks(at moment: Date, age: Int64?) async throws(VaultError) -> Int {
        try await sweep(at: moment, age: age, limit: .max).count
    }

    /// The largest number of chunks that a sync removes.
    static let sweepLimit = 200

    /// Sweeps once a day of the store's age, if the store has chunks. When more chunks are due than one sync removes,
    /// the next sync continues.
    /// - Parameter age: The age of the store; nil when no clock confirms it, and then no sweep is due.
    /// - Returns: The report of the sweep's own round; nil when no sweep was due or it failed.
    func sweepWhenDue(at moment: Date, age: Int64?) async -> SyncReport? {
        guard let age else { return nil }
        do {
            guard try store.hasChunks() || store.hasWaitingChunks() else { return nil }
            if let before = try store.number(.sweptAt), age - before < 86_400 { return nil }
            try store.set(.sweptAt, age)
            try forgetUnnamedWaiting(at: age)
            let (count, report) = try await sweep(at: moment, age: age, limit: Self.sweepLimit)
            if count >= Self.sweepLimit { try store.set(.sweptAt, nil) }
            return report
        } catch {
            return nil
        }
    }

    private func sweep(
        at moment: Date, age: Int64?, limit: Int
    ) async throws(VaultError) -> (count: Int, report: SyncReport) {
        try await takeBackAbandoned()
        guard try stored({ try store.hasChunks() }) else { return (0, SyncReport()) }
        // A plan has ten years at most; a hostile server may return any number.
        let days = Int64(min(max(try await account().limits.deletedDays, 30), 3_650))
        await serverLock.lock()
        defer { serverLock.unlock() }
        // Fetches manifests that other devices have put since, before a decision.
        let report = try await round()
        guard report.isHeld == false else { throw .deletionsHeld }
        let opened = try open
        let confirmed = age == nil ? try confirmedAge() : age
        guard let age = confirmed else { return (0, report) }
        let end = moment.addingTimeInterval(-Double(days) * 86_400)
        let unnamed = try unnamedChunks(at: age, days: days, storedUntil: end, opened.engine.sealer)
        var count = 0
        for chunk in unnamed where count < limit {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            // An attachment that is created at the same time may use it.
            guard try stored({ try store.chunk(chunk.id) }) == chunk else { continue }
            do throws(APIError) {
                _ = try await settings.retries({ () throws(APIError) in
                    try await api.deleteItem(chunk.id, .revision(chunk.revision), opened.token)
                })
                count += 1
            } catch {
                // The chunk was deleted or written again since.
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

    /// Records the chunks without a name, and returns those that have had none for this number of days.
    /// - Parameter end: Chunks that the server stored later are excluded.
    private func unnamedChunks(
        at age: Int64, days: Int64, storedUntil end: Date, _ sealer: Sealer
    ) throws(VaultError) -> [StoredChunk] {
        try stored { try store.removeAgedVersions(at: age) }
        let (indexed, isIndexWhole) = try indexedChunks(sealer)
        guard isIndexWhole, try !stored({ try store.hasItemsBehind() }) else { return [] }
        let due = try noteUnnamed(except: indexed, at: age, days: days).filter { $0.storedAt <= end }
        if due.isEmpty { return [] }
        // A removed chunk is lost for all devices. Therefore all content is opened instead of using the index.
        let (named, isWhole) = try namedChunks(sealer)
        guard isWhole else { return [] }
        let (kept, areVersionsWhole) = try chunksOfReplacedVersions(sealer)
        guard areVersionsWhole else { return [] }
        try stored {
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
        try stored {
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
