/// The progress of a long operation.
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
    /// Returns the progress of syncs, rotations, exports, imports and folders, from the moment of the call on. A slow reader
    /// misses some.
    ///
    /// ```swift
    /// for await progress in vault.progress() {
    ///     if case .sent(let count, let total) = progress { print("\(count) of \(total)") }
    /// }
    /// ```
    public nonisolated func progress() -> AsyncStream<VaultProgress> { progressObservers.add() }
}
