internal import Foundation

extension Vault {
    /// Brings device and server together. One at a time: a second call waits for the first and then does its own.
    @discardableResult
    public func sync() async throws(VaultError) -> SyncReport {
        await beginTurn()
        defer { endTurn() }
        return try await round()
    }

    /// Agrees to the deletions that ``Notice/Kind/massDeletion`` tells of, and syncs.
    @discardableResult
    public func agreeToDeletions() async throws(VaultError) -> SyncReport {
        try stored { try store.set(.agreedDeletions, 1) }
        let report: SyncReport
        do throws(VaultError) {
            report = try await sync()
        } catch {
            // It was meant for these deletions, not for the next ones.
            try stored { try store.set(.agreedDeletions, nil) }
            throw error
        }
        try stored {
            try store.set(.agreedDeletions, nil)
            for notice in try store.notices() where notice.kind == .massDeletion {
                try store.forgetNotice(notice.number)
            }
        }
        return report
    }

    // MARK: Turns

    /// Waits until nobody else brings store and server together, or changes the keys between them.
    func beginTurn() async {
        while hasTurn { await withCheckedContinuation { waiting.append($0) } }
        hasTurn = true
    }

    func endTurn() {
        hasTurn = false
        let waiters = waiting
        waiting = []
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Rounds

    /// For who has the turn.
    func round() async throws(VaultError) -> SyncReport {
        try await settleRotation()
        return try await runEngine()
    }

    func runEngine() async throws(VaultError) -> SyncReport {
        let engine = try self.engine
        do {
            let report = try await engine.round()
            try stored { try store.emptyTrash(before: Date(timeIntervalSinceNow: -30 * 86_400)) }
            if !report.changed.isEmpty { tell(report.changed) }
            return report
        } catch let error as StoreError {
            throw .store(error)
        } catch let error as APIError {
            throw VaultError(error)
        } catch let error as VaultError {
            throw error
        } catch {
            throw .unavailable(.transport(.cancelled))
        }
    }
}
