public import Foundation

/// The state of the sync between a vault and its server, for an app to show.
public enum SyncState: Sendable {
    /// Nothing has been synced since the vault was opened, or since it has a new session after a sync that has failed.
    case idle
    /// The vault is locked: ``Vault/unlock(_:)``.
    case locked
    /// The vault was signed out, or its account was deleted. No other state follows.
    case signedOut
    /// A sync is under way.
    case syncing
    /// The last sync came to its end, at this time. What was written since is not sent (``Vault/unsentCount()``).
    case inStep(since: Date)
    /// The last sync did not come to its end; ``Vault/keepInSync()`` tries again at this time, or nobody does.
    case failed(VaultError, next: Date?)
}

extension Vault {
    /// The state now, and each that follows. Who reads slowly sees the last one.
    ///
    /// ```swift
    /// for await state in await vault.states() {
    ///     if case .failed(let error, _) = state { print(error.localizedDescription) }
    /// }
    /// ```
    public func states() -> AsyncStream<SyncState> { stateObservers.add(keeping: 1, beginningWith: state) }

    /// Does what brings vault and server together, and says how it goes.
    func syncing<Result>(_ body: () async throws(VaultError) -> Result) async throws(VaultError) -> Result {
        let before = state
        note(.syncing)
        do throws(VaultError) {
            let result = try await body()
            note(.inStep(since: Date()))
            return result
        } catch {
            note(Task.isCancelled ? before : .failed(error, next: nil))
            throw error
        }
    }

    /// A vault that was locked meanwhile stays locked.
    func note(_ state: SyncState) { if opened != nil { self.state = state } }
}
