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
        /// A shared vault that this account may only read. Changes in the folder are not sent.
        case readOnly = "read_only"
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

/// Warnings that rounds of a folder have reported and will repeat.
extension Store {
    /// The maximum number of stored warnings. Further ones are reported as new each time.
    private static let warningLimit = 10_000

    private static func factName(_ folder: ItemID) -> String { "warned-\(folder)" }

    func warned(in folder: ItemID) throws -> Set<[UInt8]> {
        let value = try database.rows("SELECT value FROM facts WHERE name = ?", .text(Self.factName(folder))) {
            $0.blob(0) ?? []
        }.first
        return Set((value ?? []).split(separator: 0).map { Array($0) })
    }

    func setWarned(_ warnings: Set<[UInt8]>, in folder: ItemID) throws {
        if try warned(in: folder) == warnings { return }
        try database.execute("DELETE FROM facts WHERE name = ?", .text(Self.factName(folder)))
        if warnings.isEmpty { return }
        let names = warnings.sorted { $0.lexicographicallyPrecedes($1) }.prefix(Self.warningLimit)
        try database.execute(
            "INSERT INTO facts (name, value) VALUES (?, ?)", .text(Self.factName(folder)),
            .blob(Array(names.joined(separator: [0]))))
    }
}

extension FolderWarning {
    /// True when later rounds repeat it until a person corrects the cause.
    var isLasting: Bool {
        switch kind {
        case .link, .specialFile, .unusableName, .nestedFolder, .refusedTitle: true
        default: false
        }
    }

    /// In bytes: texts that are equal in Swift can be two names on a disk.
    var name: [UInt8] { Array("\(kind.rawValue) \(path)".utf8) }
}
