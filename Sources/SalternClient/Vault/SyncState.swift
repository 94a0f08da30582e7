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

/// The progress of a long operation.
public enum VaultProgress: Hashable, Sendable {
    /// The number of changes of other devices that have been fetched.
    case fetched(Int)
    /// The number of changes of this device that have been sent.
    case sent(Int, of: Int)
    /// The sealed bytes of waiting attachments that have been sent.
    case sentContent(Int64, of: Int64)
    /// The number of items that have been sealed again for a rotation.
    case sealedAnew(Int, of: Int)
    /// The bytes of an export that have been written.
    case exported(Int)
    /// The bytes of a file that have been imported.
    case imported(Int, of: Int)
    /// The bytes of a folder's files that have been read to find changes.
    case read(Int)
    /// The number of files that have been sent, fetched, moved or deleted, of those in which folder and vault differed.
    /// Further ones can follow.
    case settled(Int, of: Int)
}
