extension FolderSync {
    /// Keeps both sides the same until the task is cancelled: a round at once, and one whenever something changes in the
    /// folder, in the vault or on the server. Many deletions are held back, those from elsewhere with what comes after them,
    /// and everything else goes on. ``FolderSettings/allowsDeletions`` is about the first round, with or without the server.
    ///
    /// Where the kernel has no room to watch every folder, all of them are looked through each minute, and the first report
    /// of that says so (``FolderWarning/Kind/unwatched``).
    /// - Parameter report: Is told after each round.
    /// - Throws: ``FolderError``, and what `report` throws.
    public func watch(_ report: @Sendable (FolderReport) async throws -> Void) async throws {
        try await watch(.kernel, every: .seconds(60), report)
    }

    func watch(
        _ calls: FolderWatchCalls, every interval: Duration, _ report: @Sendable (FolderReport) async throws -> Void
    ) async throws {
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watcher = FolderWatcher(root, calls) { continuation.yield() }
        let vault = self.vault
        let changes = vault.changes()
        continuation.yield()
        let following = Task { () -> VaultError? in
            defer { continuation.finish() }
            do throws(VaultError) { try await vault.keepInSync() } catch { return error }
            return nil
        }
        let local = Task { for await _ in changes { continuation.yield() } }
        var looking: Task<Void, any Error>?
        defer { allowed = settings.allowedDeletions }
        defer {
            following.cancel()
            local.cancel()
            looking?.cancel()
        }
        for await _ in nudges {
            // Before the round: what changes while it looks is another nudge.
            let isWhole = watcher.watchAll()
            var done = try await run()
            // Nobody has seen what comes later.
            allowed = []
            if isWhole {
                looking?.cancel()
                looking = nil
            } else if looking == nil {
                done.warn(.unwatched, root)
                looking = Task {
                    while true {
                        try await Task.sleep(for: interval)
                        continuation.yield()
                    }
                }
            }
            try await report(done)
        }
        if Task.isCancelled { return }
        if let error = await following.value { throw FolderError.vault(error) }
    }
}
