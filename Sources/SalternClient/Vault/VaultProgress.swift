/// How far something long has come.
public enum VaultProgress: Hashable, Sendable {
    /// So many changes of other devices have been fetched.
    case fetched(Int)
    /// So many of the changes that were made here have been sent.
    case sent(Int, of: Int)
    /// So many items have been sealed anew for a rotation.
    case sealedAnew(Int, of: Int)
    /// So many bytes of an export have been written.
    case exported(Int)
}

extension Vault {
    /// How far syncing, a rotation or an export has come, from the moment of the call on. Who reads slowly misses some.
    public nonisolated func progress() -> AsyncStream<VaultProgress> { progressObservers.add() }
}
