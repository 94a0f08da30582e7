internal import Foundation

extension Vault {
    /// Syncs this device with the server. One sync runs at a time: a second call waits for the first and then syncs.
    ///
    /// Content of attachments that waits on this device is sent, and then the items that name it; ``progress()``
    /// reports it. Once a day the call also removes chunks of deleted attachments from the server (``sweepChunks()``).
    /// An error of that step does not fail the sync. Shared vaults follow; errors of one are in
    /// ``SyncReport/vaultFailures``.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: ``VaultError/unavailable(_:)`` without a reply, ``VaultError/sessionEnded``, ``VaultError/locked``.
    ///   Edits always stay on the device.
    @discardableResult
    public func sync() async throws(VaultError) -> SyncReport {
        try await syncing.sync()
    }

    /// Approves the deletions of ``Notice/Kind/massDeletion``, and syncs. The approval is valid for this round only,
    /// even when it fails.
    ///
    /// ```swift
    /// // After the list was shown and the user has agreed:
    /// if try await !vault.heldDeletions().isEmpty { try await vault.agreeToDeletions() }
    /// ```
    /// - Parameter collection: The collection whose deletions are approved; nil for all.
    @discardableResult
    public func agreeToDeletions(in collection: String? = nil) async throws(VaultError) -> SyncReport {
        try await syncing.sync(collection.map { .collections([$0]) } ?? .all)
    }

    /// Returns the items that other devices have deleted and that are kept until the user approves
    /// (``agreeToDeletions(in:)``), by collection and title.
    ///
    /// ```swift
    /// for deletion in try await vault.heldDeletions() { print(deletion.title ?? "untitled") }
    /// ```
    public func heldDeletions() throws(VaultError) -> [HeldDeletion] {
        try items.heldDeletions()
    }

    /// Syncs now and after each change on the server or here, until the task is cancelled or the session ends. While
    /// the server is unreachable, attempts are repeated after waits that double.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: Permanent errors, such as another key or an untrusted certificate.
    public func keepInSync() async throws(VaultError) {
        try await syncing.keepInSync()
    }

    // MARK: State

    /// Returns a sequence with the present state and each later one. A slow reader receives only the last state.
    ///
    /// ```swift
    /// for await state in await vault.states() {
    ///     if case .failed(let error, _) = state { print(error.localizedDescription) }
    /// }
    /// ```
    public func states() -> AsyncStream<SyncState> { observers.states.add(keeping: 1, beginningWith: state) }

    /// Returns the progress of syncs, rotations, exports, imports and folders, from the moment of the call on. A slow
    /// reader misses some.
    ///
    /// ```swift
    /// for await progress in vault.progress() {
    ///     if case .sent(let count, let total) = progress { print("\(count) of \(total)") }
    /// }
    /// ```
    public nonisolated func progress() -> AsyncStream<VaultProgress> { observers.progress.add() }

    /// The properties of a ``VaultModel``.
    func overview() -> (SyncState, unsentCount: Int, [Notice]) {
        (state, (try? unsentCount()) ?? 0, (try? notices()) ?? [])
    }

    /// The number of times that the vault was opened.
    var openings: Int { session.openings }

    func waitForOpening(after seen: Int) async -> Bool { await syncing.waitForOpening(after: seen) }

    /// - Throws: The errors of ``keepInSync()``.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) { try await syncing.listen(onChange) }

    func sync(_ agreement: DeletionAgreement, of owner: ItemOwner) async throws(VaultError) -> SyncReport {
        try await syncing.sync(agreement, of: owner)
    }

    func fetch(
        _ agreement: DeletionAgreement, of owner: ItemOwner, learns: Bool = true
    ) async throws(VaultError) -> SyncReport {
        try await syncing.fetch(agreement, of: owner, learns: learns)
    }
}

/// A deletion by another device that waits for the user's approval.
public struct HeldDeletion: Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The item's collection.
    public let collection: String
    /// The title; nil for an item without a title, or one that cannot be opened.
    public let title: String?
}
