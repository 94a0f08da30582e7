/// The settings of a folder's sync.
///
/// ```swift
/// var settings = FolderSettings(collection: "files")
/// settings.allowedDeletions = Set(DeletionDirection.allCases)  // as the user has agreed
/// show(try await FolderSync(vault: vault, root: folder, settings: settings).run().conflicts.count)
/// ```
public struct FolderSettings: Sendable {
    /// The collection whose items are the files.
    public var collection: String
    /// True to let other processes use the vault's store between the rounds of ``FolderSync/watch(_:)``, and during a
    /// long one. While the folder is watched, only other folders with this setting may use the vault in this process.
    public var lendsStore = false
    /// The directions in which many deletions at once are approved. With ``FolderSync/watch(_:)`` the approval is valid
    /// for the deletions that exist at its beginning.
    ///
    /// Deletions of other devices are only approved in this collection. With both directions, a folder with a missing
    /// or outdated marker is filled as a new one, and nothing is deleted.
    public var allowedDeletions: Set<DeletionDirection>
    /// True when they are approved in both directions.
    public var allowsDeletions: Bool {
        get { allowedDeletions == Set(DeletionDirection.allCases) }
        set { allowedDeletions = newValue ? Set(DeletionDirection.allCases) : [] }
    }
    /// True to merge a folder that is new to this device with a collection that another folder of the device syncs.
    /// While a folder is watched, only the first round has this permission.
    public var allowsSecondFolder = false
    /// The name of the device in names of conflict copies.
    public var deviceName: String
    /// True to accept executable files below names with a leading dot from other devices. Programs such as git run them
    /// automatically (`.git/hooks`). Otherwise each is a ``FolderWarning/Kind/hiddenExecutable``.
    public var allowsHiddenExecutables = false

    /// Creates settings.
    public init(collection: String = "files", allowsDeletions: Bool = false, deviceName: String = "device") {
        self.collection = collection
        self.allowedDeletions = allowsDeletions ? Set(DeletionDirection.allCases) : []
        self.deviceName = deviceName
    }
}

/// The results of a round.
public struct FolderReport: Sendable {
    /// Files that were fetched, or that a dry run would fetch.
    public internal(set) var downloaded: [FolderPath] = []
    /// Files that were sent, or that a dry run would send.
    public internal(set) var uploaded: [FolderPath] = []
    /// Files that were renamed, in the folder or in the vault.
    public internal(set) var renamed: [FolderPath] = []
    /// Files that other devices have deleted. They are in the folder's trash.
    public internal(set) var deletedHere: [FolderPath] = []
    /// Files that were deleted in the folder. They are in the vault's trash.
    public internal(set) var deletedThere: [FolderPath] = []
    /// Folders without files that other devices have created, and that are created in this folder.
    public internal(set) var fetchedFolders: [FolderPath] = []
    /// Folders without files that were created in this folder.
    public internal(set) var sentFolders: [FolderPath] = []
    /// Empty folders that other devices have removed, and that are removed in this folder.
    public internal(set) var removedFoldersHere: [FolderPath] = []
    /// Empty folders that were removed in this folder.
    public internal(set) var removedFoldersThere: [FolderPath] = []
    /// Copies of files that were changed on both sides.
    public internal(set) var conflicts: [FolderPath] = []
    /// Entries that the ignore files exclude: their paths, those of folders with a slash at the end. The content of an
    /// ignored folder is not listed. The list is complete after a round that has examined everything.
    public internal(set) var ignored: [String] = []
    /// Entries that were skipped or need a person's attention. A round with warnings has completed all other actions.
    public internal(set) var warnings: [FolderWarning] = []
    /// The deletions that wait for approval; see ``FolderSettings/allowsDeletions``.
    public internal(set) var held = HeldDeletions()
    /// The files of ``held`` that other devices have deleted or emptied.
    public internal(set) var heldHere: [FolderPath] = []
    /// The files of ``held`` that are missing or empty in the folder.
    public internal(set) var heldThere: [FolderPath] = []
    /// True when deletions of items wait for approval, in this collection or another: ``Vault/heldDeletions()``.
    public internal(set) var isVaultHeld = false
    /// True when the server was unreachable: a later round sends the changes.
    public internal(set) var isOffline = false

    /// The account's items, in this collection or another, that other devices have deleted: ``Vault/restore(_:)``
    /// restores them.
    public internal(set) var removed: Set<ItemID> = []
    /// The number of the account's changes that the server does not have: it is unreachable, or has rejected them.
    public internal(set) var unsent = 0

    mutating func warn(_ kind: FolderWarning.Kind, _ path: String, _ failure: SystemFailure? = nil) {
        let warning = FolderWarning(kind: kind, path: path, failure: failure)
        if !warnings.contains(warning) { warnings.append(warning) }
    }

    /// Adds a warning for an ignore file that cannot be applied.
    mutating func warn(_ fault: IgnoreFault, _ path: String) {
        let warning = FolderWarning(fault, path)
        if !warnings.contains(warning) { warnings.append(warning) }
    }

    /// Adds a warning for a file for which the plan has no room.
    mutating func warn(_ shortage: PlanShortage, _ path: FolderPath) {
        warnings.removeAll { $0.isNoRoom(for: path) }
        warnings.append(FolderWarning(shortage, path))
    }
}

/// An entry that was skipped or needs attention.
public struct FolderWarning: Hashable, Sendable {
    /// The kinds of warnings. The raw values are stable, for scripts.
    public enum Kind: String, Sendable {
        /// A link, which is not followed.
        case link
        /// A pipe, a socket or a device.
        case specialFile = "special_file"
        /// A local name that is not UTF-8, or is invalid on other devices. Nothing is deleted in this round, because a
        /// missing file may have got this name.
        case unusableName = "unusable_name"
        /// An item whose title is not a path within the folder.
        case refusedTitle = "refused_title"
        /// An item that cannot be opened.
        case unreadableItem = "unreadable_item"
        /// A file or folder that cannot be read, or is on another disk: nothing is deleted in this round.
        case unreadable
        /// A folder that is synced itself. It is skipped, and nothing is deleted in this round.
        case nestedFolder = "nested_folder"
        /// The folder has been replaced, or its disk is missing: nothing is deleted in this round, and no earlier file
        /// is fetched.
        case markerMissing = "marker_missing"
        /// A file for which the plan has no room; ``FolderWarning/shortage`` has the amounts. Other files continue.
        /// This one is sent when there is room, or when it has changed.
        case noRoom = "no_room"
        /// Some folders cannot be watched: the kernel has no room (`fs.inotify.max_user_watches`,
        /// `fs.inotify.max_user_instances`), or one cannot be opened. Everything is examined each minute. It is
        /// reported once.
        case unwatched
        /// An executable file of another device below a name with a leading dot. The local file is not changed
        /// (``FolderSettings/allowsHiddenExecutables``).
        case hiddenExecutable = "hidden_executable"
        /// An ignore file that cannot be applied. Until it is corrected, nothing in its folder except the file itself
        /// is sent, fetched or deleted. ``FolderWarning/ignoreFault`` has the reason.
        case ignoreFile = "ignore_file"
        /// A file that cannot be written, moved or sent now.
        case failed
    }

    /// The reason for the warning.
    public let kind: Kind
    /// The affected path, which need not be a valid ``FolderPath``.
    public let path: String
    /// The exceeded limit, for ``Kind/noRoom``.
    public let shortage: PlanShortage?
    /// The kernel's error, for ``Kind/failed``; nil for another cause.
    public let failure: SystemFailure?
    /// The fault, for ``Kind/ignoreFile``.
    public let ignoreFault: IgnoreFault?
    /// True when an earlier round has reported the same link, special file, name, title or folder.
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

/// The reason for which a folder was not synced.
public enum FolderError: Error, Sendable {
    /// The folder cannot be opened or written.
    case unusable
    /// The folder contains the vault's own store, is it, or is in it.
    case holdsStore
    /// The folder is a copy of the one at this path, which still exists and has the same marker.
    case copy(of: String)
    /// The folder is an older copy of one that was synced since, or was restored from a backup. Its missing files would
    /// be deleted on other devices. ``FolderSettings/allowsDeletions`` makes it a new folder, which deletes nothing.
    case outdated
    /// The folder was synced with this collection, which is not ``FolderSettings/collection``.
    case otherCollection(String)
    /// The folder is synced with another account.
    case otherAccount
    /// Another folder of this device, last at this path, is synced with the collection. Both folders would get all
    /// files of both. ``FolderSettings/allowsSecondFolder`` allows it.
    case secondFolder(beside: String)
    /// The folder is in this one, which is synced. Each would send the other's files.
    case nested(in: String)
    /// A call of the vault failed.
    case vault(VaultError)
    /// The task was cancelled. Actions up to then are complete.
    case cancelled

    /// The code of the error. It is stable, for scripts.
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
