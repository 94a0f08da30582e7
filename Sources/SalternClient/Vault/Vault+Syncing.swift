internal import Foundation

extension Vault {
    /// Syncs this device with the server. One sync runs at a time: a second call waits for the first and then syncs.
    ///
    /// Content of attachments that waits on this device is sent, and then the items that name it; ``progress()``
    /// reports it. Once a day the call also removes chunks of deleted attachments from the server (``sweepChunks()``).
    /// An error of that step does not fail the sync.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: ``VaultError/unavailable(_:)`` without a reply, ``VaultError/sessionEnded``, ``VaultError/locked``.
    ///   Edits always stay on the device.
    @discardableResult
    public func sync() async throws(VaultError) -> SyncReport {
        try await roundAndSweep(.none)
    }

    private func roundAndSweep(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        var report = try await roundInTurn(agreement)
        let later = await attachments.sweeper.sweepWhenDue(at: settings.now(), age: try session.confirmedAge()) {
            () async throws(VaultError) in try await round()
        }
        if let later { report.add(later) }
        return report
    }

    private func roundInTurn(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        await serverLock.lock()
        defer { serverLock.unlock() }
        return try await round(agreement)
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
        try await roundAndSweep(collection.map { .collections([$0]) } ?? .all)
    }

    /// Returns the items that other devices have deleted and that are kept until the user approves
    /// (``agreeToDeletions(in:)``), by collection and title.
    ///
    /// ```swift
    /// for deletion in try await vault.heldDeletions() { print(deletion.title ?? "untitled") }
    /// ```
    public func heldDeletions() throws(VaultError) -> [HeldDeletion] {
        let held = try stored { try store.heldDeletions() }
        var deletions: [HeldDeletion] = []
        for deletion in held {
            let title = try? item(deletion.id)?.title
            deletions.append(HeldDeletion(id: deletion.id, collection: deletion.collection, title: title))
        }
        return deletions.sorted {
            ($0.collection, $0.title ?? "", $0.id.description) < (
                $1.collection, $1.title ?? "", $1.id.description
            )
        }
    }

    // MARK: Rounds

    /// Runs one round. The caller holds ``serverLock``.
    func round(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await session.syncing { () async throws(VaultError) in
            try await settleUnconfirmedChange()
            try await settleRotation()
            try await recheckOlderKeyring()
            try await makeRoom()
            var report = try await runEngine(agreement)
            if try await attachments.waiting.send(), try stored({ try store.changeCount() }) > 0 {
                report.add(try await runEngine(agreement))
            }
            try stored { try store.set(.leaving, nil) }
            await plan.recheck(hasUnsent: report.unsent > 0)
            return report
        }
    }

    /// Before anything is sent: abandoned chunks may use the room.
    private func makeRoom() async throws(VaultError) {
        try attachments.waiting.forgetUnsettled()
        do throws(VaultError) { try await attachments.abandoned.removeAbandoned() } catch .refused {
            // An error does not block other changes.
        }
    }

    /// - Parameter sends: False to fetch only.
    func runEngine(
        _ agreement: DeletionAgreement = .none, sends: Bool = true
    ) async throws(VaultError) -> SyncReport {
        let engine = try self.engine
        let noticesBefore = try stored { try store.lastNotice() }
        var report = SyncReport()
        do {
            // Stored changes are not fetched again, so they are reported even after an error.
            defer {
                noteRemoved(report)
                let hasNotices = (try? store.lastNotice()) != noticesBefore
                if !report.changed.isEmpty || hasNotices { session.notifySynced(report.changed) }
            }
            try await engine.round(into: &report, agreement, sends: sends)
            plan.noteReply()
            try removeAged()
            return report
        } catch let error where error is StoreError || error is StoreClosed {
            throw VaultError(ofStore: error)
        } catch let error as APIError {
            throw VaultError(error)
        } catch let error as VaultError {
            throw error
        } catch {
            throw .unavailable(.transport(.cancelled))
        }
    }

    /// Removes expired content from the trash, at the end of a successful round.
    private func removeAged() throws(VaultError) {
        let before = try stored { try store.number(.age) }
        guard let age = try session.confirmedAge(), age != before else { return }
        try stored { try store.removeAged(at: age) }
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
