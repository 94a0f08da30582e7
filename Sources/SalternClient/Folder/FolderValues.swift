/// The compared content of a file.
struct FileContent: Hashable, Sendable {
    /// SHA-256.
    var digest: [UInt8]
    var byteCount: Int64
    var isExecutable: Bool
}

/// The version of an item, which is cheaper to read than its content.
struct ItemStamp: Hashable, Sendable {
    /// The last received revision of the server.
    var revision: Int64?
    /// The sequence of the unconfirmed change.
    var sequence: Int64?
}

/// The state of a file when both sides were last equal.
struct KnownFile: Hashable, Sendable {
    var path: FolderPath
    var content: FileContent
    /// The version of the item in this state; nil when none was received since.
    var stamp: ItemStamp?
    /// True for an announced state, which is valid if the file exists.
    var isPending = false
    /// True when the file was ignored at its last examination; see ``FolderSync/leaveOut(_:_:_:)``.
    var isIgnored = false

    /// The state without the announcement.
    var done: KnownFile { KnownFile(path: path, content: content, stamp: stamp) }
}

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

/// A file of the vault.
struct RemoteFile: Hashable, Sendable {
    var path: FolderPath
    var content: FileContent
    var stamp = ItemStamp()
    /// The time of the last change, by the device of the change. It is read only for files with equal names.
    var modified: Int64?
}

/// All input of a decision.
struct FolderView: Sendable {
    var known: [ItemID: KnownFile] = [:]
    var local: [FolderPath: FileContent] = [:]
    var remote: [ItemID: RemoteFile] = [:]
    /// The existing folders, and those of them that are empty.
    var folders: Set<FolderPath> = []
    var emptyFolders: Set<FolderPath> = []
    /// Folders that have items: their last synced state, and their state in the vault.
    var knownFolders: [ItemID: KnownFolder] = [:]
    var remoteFolders: [ItemID: RemoteFolder] = [:]
    /// Folders of the view's files that have items outside of the view.
    var outerFolders: Set<FolderPath> = []
    /// Items that have a tombstone. An item that is only missing was not deleted.
    var buried: Set<ItemID> = []
    /// Items that are skipped, because their titles are invalid or they cannot be opened.
    var ignored: Set<ItemID> = []
    /// True when the whole folder was examined.
    var isWalkComplete = true
    /// True when the file system treats "a" and "A" as one name.
    var foldsCase = false
    /// The number of known files, for a view with only some of them.
    var total: Int?
    /// Contents of known files that files outside of the view have, too.
    var keptOutside: Set<[UInt8]> = []
    var knownCount: Int { total ?? known.count }
    /// The device and the date in names of conflict copies.
    var device = "device"
    var date = "date"

    /// Returns a file's state after its item's content was written over it. If only the executable bit was changed
    /// locally, the bit stays, and is sent afterwards. Nil when there is no item.
    func fetched(_ id: ItemID, over local: FileContent?) -> FileContent? {
        guard var content = remote[id]?.content else { return nil }
        if let local, let known = known[id]?.content, local.digest == known.digest, local != known {
            content.isExecutable = local.isExecutable
        }
        return content
    }

    /// Gives files the known executable bit, if the file system does not store it.
    mutating func takeKnownExecutableBits() {
        let byPath = Dictionary(known.values.map { ($0.path, $0.content) }) { first, _ in first }
        let byDigest = Dictionary(known.values.map { ($0.content.digest, $0.content) }) { first, _ in first }
        let remotes = Dictionary(remote.values.map { ($0.path, $0.content) }) { first, _ in first }
        for (path, content) in local {
            let like = byPath[path] ?? remotes[path] ?? byDigest[content.digest]
            local[path]?.isExecutable = like?.isExecutable ?? false
        }
    }

    /// Gives local files the known spelling of their folders, if the file system treats "a" and "A" as one name.
    /// Otherwise two disks could each insist on their own spelling.
    mutating func takeKnownSpellings() {
        func key(_ path: FolderPath) -> [[UInt8]] {
            (path.names.dropLast().map { $0.lowercased() } + path.names.suffix(1)).map { Array($0.utf8) }
        }
        let paths = Set(known.values.map(\.path))
        let spelt = Dictionary(paths.map { (key($0), $0) }) { min($0, $1) }
        local = Dictionary(
            local.map { path, content in (paths.contains(path) ? path : spelt[key(path)] ?? path, content) }
        ) { first, _ in first }
    }
}
