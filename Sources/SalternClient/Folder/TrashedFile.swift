/// A file in the trash of a folder.
struct TrashedFile: Hashable, Sendable {
    /// Its earlier path.
    var path: FolderPath?
    /// SHA-256 of its content when it was put there.
    var digest: [UInt8]
    /// The kernel's data of the file at the last comparison; nil when it has to be read again.
    var signature: FileSignature?
    /// The age of the store when it was first found there; nil when that was not recorded yet.
    var since: Int64?
}
