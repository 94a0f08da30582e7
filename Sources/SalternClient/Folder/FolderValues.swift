/// What is in a file, as far as it is compared.
struct FileContent: Hashable, Sendable {
    /// SHA-256.
    var digest: [UInt8]
    var byteCount: Int64
    var isExecutable: Bool
}

/// Which version of an item was seen: cheaper than its content.
struct ItemStamp: Hashable, Sendable {
    /// What the server was last seen to have.
    var revision: Int64?
    /// What was changed here and not confirmed.
    var sequence: Int64?
}

/// What both sides were when they were last the same.
struct KnownFile: Hashable, Sendable {
    var path: FolderPath
    var content: FileContent
    /// The version of the item that is this; nil when none was seen since.
    var stamp: ItemStamp?
    /// Whether it was only about to be so: it counts when the file is there.
    var isPending = false
    /// Whether the file was ignored when it was examined last; see ``FolderSync/leaveOut(_:_:_:)``.
    var isIgnored = false

    /// It has come to be so.
    var done: KnownFile { KnownFile(path: path, content: content, stamp: stamp) }
}

/// A file of the vault.
struct RemoteFile: Hashable, Sendable {
    var path: FolderPath
    var content: FileContent
    var stamp = ItemStamp()
    /// When its content was changed, as the device says where that was; looked at where two files have one name.
    var modified: Int64?
}

/// Everything that is decided from.
struct FolderView: Sendable {
    var known: [ItemID: KnownFile] = [:]
    var local: [FolderPath: FileContent] = [:]
    var remote: [ItemID: RemoteFile] = [:]
    /// Folders that are here, and those of them in which nothing is.
    var folders: Set<FolderPath> = []
    var emptyFolders: Set<FolderPath> = []
    /// Folders that items stand for, as they were when both sides had them last, and as they are in the vault.
    var knownFolders: [ItemID: KnownFolder] = [:]
    var remoteFolders: [ItemID: RemoteFolder] = [:]
    /// Folders that items outside of the view stand for, of those that its files are in.
    var outerFolders: Set<FolderPath> = []
    /// Items of which there is a tombstone. What is only absent was not deleted by anybody.
    var buried: Set<ItemID> = []
    /// Items that are not touched, because their titles are no paths or they do not open.
    var ignored: Set<ItemID> = []
    /// Whether all that is in the folder was seen.
    var isWalkComplete = true
    /// Whether the file system takes "a" and "A" for one name.
    var foldsCase = false
    /// How many files are known, where the view has only some of them.
    var total: Int?
    /// Contents of known files that files outside of the view have, too.
    var keptOutside: Set<[UInt8]> = []
    /// How many files are known.
    var knownCount: Int { total ?? known.count }
    /// For names of conflict copies.
    var device = "device"
    var date = "date"

    /// Returns what a file is after the content of its item has come over it. Where only the executable bit was changed here,
    /// that stays, and is sent afterwards. Nil where there is no item.
    func fetched(_ id: ItemID, over local: FileContent?) -> FileContent? {
        guard var content = remote[id]?.content else { return nil }
        if let local, let known = known[id]?.content, local.digest == known.digest, local != known {
            content.isExecutable = local.isExecutable
        }
        return content
    }

    /// Where the file system does not keep the executable bit, a file has the one that is known of it.
    mutating func takeKnownExecutableBits() {
        let byPath = Dictionary(known.values.map { ($0.path, $0.content) }) { first, _ in first }
        let byDigest = Dictionary(known.values.map { ($0.content.digest, $0.content) }) { first, _ in first }
        let remotes = Dictionary(remote.values.map { ($0.path, $0.content) }) { first, _ in first }
        for (path, content) in local {
            let like = byPath[path] ?? remotes[path] ?? byDigest[content.digest]
            local[path]?.isExecutable = like?.isExecutable ?? false
        }
    }

    /// Where "a" and "A" are one folder, a file in it is at the path at which it is known, however the folder is spelt
    /// here: of two disks each could otherwise insist on its own spelling.
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

/// One step towards two sides that are the same. Each is right on its own: who is stopped between two begins anew.
enum FolderAction: Hashable, Sendable {
    /// Both sides are this.
    case note(ItemID, FolderPath, FileContent)
    /// It is gone on both sides, or nobody knows what has become of it there.
    case forget(ItemID)
    /// What is here goes there: over the item, or as a new one.
    case upload(FolderPath, FileContent, over: ItemID?)
    /// What is there comes here, in the place of `over`.
    case download(ItemID, to: FolderPath, over: FileContent?)
    /// It was renamed there.
    case moveHere(ItemID, from: FolderPath, to: FolderPath, FileContent)
    /// It was renamed here, or cannot have the name that it has there.
    case moveThere(ItemID, to: FolderPath, isHere: Bool)
    /// It was deleted there, and nobody has changed it here.
    case deleteHere(ItemID, FolderPath, FileContent)
    /// It was deleted here, and nobody has changed it there.
    case deleteThere(ItemID)
    /// Another item has the same name and content.
    case mergeThere(ItemID)
    /// Only the executable bit was changed there: the file gets it, and keeps the content that was changed here.
    case setExecutable(ItemID, FolderPath, Bool)
    /// What is here makes room under this name, and is a file of its own from now on.
    case moveAside(FolderPath, to: FolderPath, FileContent)
    /// A folder is here, and an item stands for it.
    case noteFolder(ItemID, FolderPath)
    /// No item stands for a folder any more, or the folder is gone on both sides.
    case forgetFolder(ItemID)
    /// An empty folder comes here.
    case makeFolderHere(ItemID, FolderPath)
    /// A folder was removed there, and nothing is in it here.
    case removeFolderHere(ItemID, FolderPath)
    /// An empty folder goes there.
    case makeFolderThere(FolderPath)
    /// A folder was removed here, or its item says nothing that other items do not say.
    case removeFolderThere(ItemID)
}
