/// How far something long has come.
public enum VaultProgress: Hashable, Sendable {
    /// So many changes of other devices have been fetched.
    case fetched(Int)
    /// So many of the changes that were made here have been sent.
    case sent(Int, of: Int)
    /// So many bytes of attachments that waited on this device have been sent, sealed.
    case sentContent(Int64, of: Int64)
    /// So many items have been sealed anew for a rotation.
    case sealedAnew(Int, of: Int)
    /// So many bytes of an export have been written.
    case exported(Int)
    /// So many bytes of a file have been imported.
    case imported(Int, of: Int)
    /// So many bytes of a folder's files have been read, to see what has changed.
    case read(Int)
    /// So much of what a folder and the vault lack of each other has been done: files that were sent, fetched, moved or
    /// deleted. There may be more afterwards.
    case settled(Int, of: Int)
}

extension Vault {
    /// How far syncing, a rotation, an export, an import or a folder has come, from the moment of the call on. Who reads
    /// slowly misses some.
    public nonisolated func progress() -> AsyncStream<VaultProgress> { progressObservers.add() }
}
