public import Foundation

/// The state of the sync between a vault and its server, for display.
public enum SyncState: Sendable {
    /// No sync has run since the vault was opened, or since a new session followed a failed sync.
    case idle
    /// The vault is locked; see ``Vault/unlock(_:)``.
    case locked
    /// The vault was signed out, or its account was deleted. No other state follows.
    case signedOut
    /// A sync is running.
    case syncing
    /// The last sync succeeded at this time. Later edits are not sent yet (``Vault/unsentCount()``).
    case inStep(since: Date)
    /// The last sync failed. ``Vault/keepInSync()`` repeats it at `next`; nil when it is not repeated.
    case failed(VaultError, next: Date?)
}
