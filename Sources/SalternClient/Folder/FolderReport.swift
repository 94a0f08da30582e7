/// How a folder is kept in sync.
public struct FolderSettings: Sendable {
    /// The collection whose items are the files.
    public var collection: String
    /// Whether other processes may use the vault's store between the rounds of ``FolderSync/watch(_:)``, and within a long
    /// one. While the folder is watched, nothing else in this process may use the vault then, except for other folders with
    /// this setting.
    public var lendsStore = false
    /// In which directions many deletions at once are meant, of who watches those that have happened when it begins. Those of
    /// other devices are meant in this collection alone. With both directions a folder whose marker is missing or outdated is
    /// filled as a new one, and deletes nothing all the same.
    public var allowedDeletions: Set<DeletionDirection>
    /// Whether they are meant in both directions.
    public var allowsDeletions: Bool {
        get { allowedDeletions == Set(DeletionDirection.allCases) }
        set { allowedDeletions = newValue ? Set(DeletionDirection.allCases) : [] }
    }
    /// Whether a folder that is new to this device may be merged with a collection with which another folder of the device is
    /// in sync. While a folder is watched, only the first round has this permission.
    public var allowsSecondFolder = false
    /// For the names of conflict copies.
    public var deviceName: String
    /// Whether executable files beneath names with a leading dot come from other devices. Programs such as git run them
    /// (`.git/hooks`) without being asked for them. Otherwise each is a ``FolderWarning/Kind/hiddenExecutable``.
    public var allowsHiddenExecutables = false

    /// Creates settings.
    public init(collection: String = "files", allowsDeletions: Bool = false, deviceName: String = "device") {
        self.collection = collection
        self.allowedDeletions = allowsDeletions ? Set(DeletionDirection.allCases) : []
        self.deviceName = deviceName
    }
}

/// What a round has done.
public struct FolderReport: Sendable {
    /// Files that were fetched, or that a dry run would fetch.
    public internal(set) var downloaded: [FolderPath] = []
    /// Files that were sent, or that a dry run would send.
    public internal(set) var uploaded: [FolderPath] = []
    /// Files that got another name, here or there.
    public internal(set) var renamed: [FolderPath] = []
    /// Deleted elsewhere: they are in the folder's trash.
    public internal(set) var deletedHere: [FolderPath] = []
    /// Deleted here: the vault's trash has them.
    public internal(set) var deletedThere: [FolderPath] = []
    /// Folders without files that were created elsewhere and are created here.
    public internal(set) var fetchedFolders: [FolderPath] = []
    /// Folders without files that were created here.
    public internal(set) var sentFolders: [FolderPath] = []
    /// Folders that were removed elsewhere and are removed here: nothing was in them.
    public internal(set) var removedFoldersHere: [FolderPath] = []
    /// Folders that were removed here, with nothing in them.
    public internal(set) var removedFoldersThere: [FolderPath] = []
    /// Copies that hold what was changed here and elsewhere.
    public internal(set) var conflicts: [FolderPath] = []
    /// Entries that the ignore files leave out: their paths, those of folders with a slash at the end. What is in an ignored
    /// folder is not listed. Complete after a round that has examined everything.
    public internal(set) var ignored: [String] = []
    /// What was left out or needs a person's attention. A round with warnings has still done everything else.
    public internal(set) var warnings: [FolderWarning] = []
    /// What waits for somebody to agree; see ``FolderSettings/allowsDeletions``.
    public internal(set) var held = HeldDeletions()
    /// The files of ``held`` that were deleted or emptied elsewhere.
    public internal(set) var heldHere: [FolderPath] = []
    /// The files of ``held`` that are missing or empty here.
    public internal(set) var heldThere: [FolderPath] = []
    /// The vault itself waits for somebody to agree to deletions, in this collection or another:
    /// ``Vault/heldDeletions()``.
    public internal(set) var isVaultHeld = false
    /// There was no server: what has changed here is sent in a later round.
    public internal(set) var isOffline = false

    /// Items of the account, in this collection or another, that were deleted elsewhere: ``Vault/restore(_:)`` brings them
    /// back.
    public internal(set) var removed: Set<ItemID> = []
    /// How many changes of the account the server does not have: it is away, or has refused them.
    public internal(set) var unsent = 0

    mutating func warn(_ kind: FolderWarning.Kind, _ path: String, _ failure: SystemFailure? = nil) {
        let warning = FolderWarning(kind: kind, path: path, failure: failure)
        if !warnings.contains(warning) { warnings.append(warning) }
    }

    /// An ignore file that cannot be applied.
    mutating func warn(_ fault: IgnoreFault, _ path: String) {
        let warning = FolderWarning(fault, path)
        if !warnings.contains(warning) { warnings.append(warning) }
    }

    /// A file for which the plan has no room.
    mutating func warn(_ shortage: PlanShortage, _ path: FolderPath) {
        warnings.removeAll { $0.isNoRoom(for: path) }
        warnings.append(FolderWarning(shortage, path))
    }
}

/// Something that was left as it is.
public struct FolderWarning: Hashable, Sendable {
    /// Stable, for scripts.
    public enum Kind: String, Sendable {
        /// A link, which is not followed.
        case link
        /// A pipe, a socket or a device.
        case specialFile = "special_file"
        /// A name here that is no UTF-8, or that other devices could not have: nothing is deleted in this round, for what is
        /// missing may have got this name.
        case unusableName = "unusable_name"
        /// An item whose title is no path beneath the folder.
        case refusedTitle = "refused_title"
        /// An item that does not open.
        case unreadableItem = "unreadable_item"
        /// A file or folder that cannot be read, or is on another disk: nothing is deleted in this round.
        case unreadable
        /// A folder that is in sync by itself: it is left alone, and nothing is deleted in this round.
        case nestedFolder = "nested_folder"
        /// The folder is not the one that it was, or its disk is not there: nothing is deleted in this round, and nothing
        /// that was there before comes back.
        case markerMissing = "marker_missing"
        /// A file for which the plan has no room: ``FolderWarning/shortage`` says how much is wanted. All others go on, and
        /// this one is sent when there is room, or when it is another one.
        case noRoom = "no_room"
        /// Not every folder can be watched: the kernel has no room (`fs.inotify.max_user_watches`,
        /// `fs.inotify.max_user_instances`), or one cannot be opened. All of them are looked through each minute. Said once.
        case unwatched
        /// An executable file of another device beneath a name with a leading dot. What is here stays as it is
        /// (``FolderSettings/allowsHiddenExecutables``).
        case hiddenExecutable = "hidden_executable"
        /// An ignore file that cannot be applied: nothing in its folder is sent, fetched or deleted until it is corrected, but
        /// the file itself. ``FolderWarning/ignoreFault`` has the reason.
        case ignoreFile = "ignore_file"
        /// A file that could not be written, moved or sent now.
        case failed
    }

    /// The reason for the warning.
    public let kind: Kind
    /// The path that the warning is about, which need not be a valid ``FolderPath``.
    public let path: String
    /// For ``Kind/noRoom``.
    public let shortage: PlanShortage?
    /// For ``Kind/failed``: why the kernel has refused it; nil when it was something else.
    public let failure: SystemFailure?
    /// For ``Kind/ignoreFile``.
    public let ignoreFault: IgnoreFault?
    /// Whether an earlier round has reported the same link, special file, name, title or folder.
    public internal(set) var isRepeated = false

    init(kind: Kind, path: String, failure: SystemFailure? = nil) {
        self.kind = kind
        self.path = path
        self.failure = failure
        shortage = nil
        ignoreFault = nil
    }

    init(_ fault: IgnoreFault, _ path: String) {
        kind = .ignoreFile
        self.path = path
        shortage = nil
        failure = nil
        ignoreFault = fault
    }

    init(_ shortage: PlanShortage, _ path: FolderPath) {
        kind = .noRoom
        self.path = path.text
        self.shortage = shortage
        failure = nil
        ignoreFault = nil
    }

    func isNoRoom(for path: FolderPath) -> Bool { kind == .noRoom && self.path == path.text }
}

/// Why a folder was not brought in sync.
public enum FolderError: Error, Sendable {
    /// The folder cannot be opened, or nothing can be written in it.
    case unusable
    /// The folder holds the vault's own store, is it, or is in it.
    case holdsStore
    /// The folder is a copy of the one at this path, which is there still: it has the same marker.
    case copy(of: String)
    /// The folder is an older copy of one that was in sync since, or came out of a backup: what it misses would be deleted
    /// elsewhere. ``FolderSettings/allowsDeletions`` makes a new folder of it, which deletes nothing.
    case outdated
    /// The folder was in sync with this collection, and not with the one of ``FolderSettings/collection``.
    case otherCollection(String)
    /// The folder is in sync with another account.
    case otherAccount
    /// Another folder of this device, which was at this path last, is in sync with the collection: both would have all files
    /// of both. ``FolderSettings/allowsSecondFolder`` agrees to that.
    case secondFolder(beside: String)
    /// The folder is in this one, which is in sync: each would send what is the other's.
    case nested(in: String)
    /// A call of the vault failed.
    case vault(VaultError)
    /// The task was cancelled. What was done by then is complete.
    case cancelled

    /// Stable, for scripts.
    public var code: String {
        switch self {
        case .unusable: "unusable"
        case .holdsStore: "holds_store"
        case .copy: "copy"
        case .outdated: "outdated"
        case .otherCollection: "other_collection"
        case .otherAccount: "other_account"
        case .secondFolder: "second_folder"
        case .nested: "nested"
        case .vault: "vault"
        case .cancelled: "cancelled"
        }
    }
}
