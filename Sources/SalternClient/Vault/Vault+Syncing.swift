internal import Foundation

extension Vault {
    /// Brings device and server together. One at a time: a second call waits for the first and then does its own.
    ///
    /// Content of attachments that waits on this device is sent, and after it the items that name it; ``progress()`` reports how
    /// much. Once a day the call also removes chunks of deleted attachments from the server (``sweepChunks()``). A failure of
    /// that is not a failure of the sync.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: ``VaultError/unavailable(_:)`` without a reply, ``VaultError/sessionEnded``, ``VaultError/locked``. Edits stay
    ///   on the device in any case.
    @discardableResult
    public func sync() async throws(VaultError) -> SyncReport {
        try await roundAndSweep(.none)
    }

    private func roundAndSweep(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        var report = try await roundInTurn(agreement)
        if let later = await sweepWhenDue(at: settings.now(), age: try confirmedAge()) { report.add(later) }
        return report
    }

    private func roundInTurn(_ agreement: DeletionAgreement) async throws(VaultError) -> SyncReport {
        await serverLock.lock()
        defer { serverLock.unlock() }
        return try await round(agreement)
    }

    /// Agrees to the deletions that ``Notice/Kind/massDeletion`` tells of, and syncs. Whatever stops it, the consent is of
    /// this one round.
    ///
    /// ```swift
    /// // After the list was shown and the user has agreed:
    /// if try await !vault.heldDeletions().isEmpty { try await vault.agreeToDeletions() }
    /// ```
    /// - Parameter collection: Only to those of this collection; nil for all.
    @discardableResult
    public func agreeToDeletions(in collection: String? = nil) async throws(VaultError) -> SyncReport {
        try await roundAndSweep(collection.map { .collections([$0]) } ?? .all)
    }

    /// The items that were deleted elsewhere and are kept until a person agrees (``agreeToDeletions(in:)``), by collection
    /// and title.
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

    /// Requires that the caller holds ``serverLock``.
    func round(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        try await syncing { () async throws(VaultError) in
            try await settleUnconfirmedChange()
            try await settleRotation()
            try await recheckOlderKeyring()
            try await makeRoom()
            var report = try await runEngine(agreement)
            if try await sendWaiting(), try stored({ try store.changeCount() }) > 0 {
                report.add(try await runEngine(agreement))
            }
            try stored { try store.set(.leaving, nil) }
            // What the server does not take may never be taken: whoever looks is told.
            if isLimitInDoubt || report.unsent > 0 {
                isLimitInDoubt = false
                _ = try? await account()
            }
            return report
        }
    }

    /// Before anything is sent: chunks that were given up may have its room.
    private func makeRoom() async throws(VaultError) {
        try forgetUnsettled()
        do throws(VaultError) { try await removeAbandoned() } catch .refused {
            // It holds up nothing else.
        }
    }

    /// - Parameter sends: False where only news are fetched.
    func runEngine(
        _ agreement: DeletionAgreement = .none, sends: Bool = true
    ) async throws(VaultError) -> SyncReport {
        let engine = try self.engine
        let noticesBefore = try stored { try store.lastNotice() }
        var report = SyncReport()
        do {
            // What is in the store by then is not fetched again: it is told now, whatever became of the rest.
            defer {
                noteRemoved(report)
                let hasNotices = (try? store.lastNotice()) != noticesBefore
                if !report.changed.isEmpty || hasNotices { notifySynced(report.changed) }
            }
            try await engine.round(into: &report, agreement, sends: sends)
            mayAskForLimits = true
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
}

/// A deletion by another device that waits for a person to agree.
public struct HeldDeletion: Hashable, Sendable {
    /// The item's id.
    public let id: ItemID
    /// The item's collection.
    public let collection: String
    /// Nil for an item without a title, or one that does not open.
    public let title: String?
}
