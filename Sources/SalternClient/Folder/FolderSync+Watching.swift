extension FolderSync {
    /// Keeps both sides the same until the task is cancelled: a round at once, and one whenever something changes in the
    /// folder, in the vault or on the server. Many deletions are held back, and everything else goes on.
    /// - Parameter report: Is told after each round.
    /// - Throws: ``FolderError``, and what `report` throws.
    public func watch(_ report: @Sendable (FolderReport) async throws -> Void) async throws {
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        guard let watcher = FolderWatcher(root, { continuation.yield() }) else { throw FolderError.unusable }
        let vault = self.vault
        let changes = vault.changes()
        continuation.yield()
        let following = Task { () -> VaultError? in
            defer { continuation.finish() }
            do throws(VaultError) { try await vault.keepInSync() } catch { return error }
            return nil
        }
        let local = Task { for await _ in changes { continuation.yield() } }
        defer {
            following.cancel()
            local.cancel()
        }
        for await _ in nudges {
            // Before the round: what changes while it looks is another nudge.
            watcher.watchAll()
            try await report(try await run())
        }
        if Task.isCancelled { return }
        if let error = await following.value { throw FolderError.vault(error) }
    }
}
