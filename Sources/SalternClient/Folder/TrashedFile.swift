/// A file in the trash of a folder.
struct TrashedFile: Hashable, Sendable {
    /// Its path before.
    var path: FolderPath?
    /// SHA-256 of what it held when it was put there.
    var digest: [UInt8]
    /// What the kernel reported of it when it was last compared; nil when it has to be read again.
    var signature: FileSignature?
    /// The age of the store when it was first found there; nil when that was not noted yet.
    var since: Int64?
}
