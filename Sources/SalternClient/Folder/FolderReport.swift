/// How a folder is kept in sync.
public struct FolderSettings: Sendable {
    /// The collection whose items are the files.
    public var collection: String
    /// Whether many deletions at once are meant.
    public var allowsDeletions: Bool
    /// For the names of conflict copies.
    public var deviceName: String

    public init(collection: String = "files", allowsDeletions: Bool = false, deviceName: String = "device") {
        self.collection = collection
        self.allowsDeletions = allowsDeletions
        self.deviceName = deviceName
    }
}

/// What a round has done.
public struct FolderReport: Sendable {
    public internal(set) var downloaded: [FolderPath] = []
    public internal(set) var uploaded: [FolderPath] = []
    /// Files that got another name, here or there.
    public internal(set) var renamed: [FolderPath] = []
    /// Deleted elsewhere: they are in the folder's trash.
    public internal(set) var deletedHere: [FolderPath] = []
    /// Deleted here: the vault's trash has them.
    public internal(set) var deletedThere: [FolderPath] = []
    /// Copies that hold what was changed here and elsewhere.
    public internal(set) var conflicts: [FolderPath] = []
    public internal(set) var warnings: [FolderWarning] = []
    /// What waits for somebody to agree; see ``FolderSettings/allowsDeletions``.
    public internal(set) var held = HeldDeletions()
    /// The vault itself waits for somebody to agree to deletions.
    public internal(set) var isVaultHeld = false
    /// There was no server: what has changed here is sent in a later round.
    public internal(set) var isOffline = false

    /// How many changes of the account the server does not have: it is away, or has refused them.
    public internal(set) var unsent = 0

    mutating func warn(_ kind: FolderWarning.Kind, _ path: String) {
        let warning = FolderWarning(kind: kind, path: path)
        if !warnings.contains(warning) { warnings.append(warning) }
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
        /// A name here that is no UTF-8, or that other devices could not have.
        case unusableName = "unusable_name"
        /// An item whose title is no path beneath the folder.
        case refusedTitle = "refused_title"
        /// An item that does not open.
        case unreadableItem = "unreadable_item"
        /// A file or folder that cannot be read, or is on another disk: nothing is deleted in this round.
        case unreadable
        /// The folder is not the one that it was, or its disk is not there: nothing is deleted in this round.
        case markerMissing = "marker_missing"
        /// A file that could not be written, moved or sent now.
        case failed
    }

    public let kind: Kind
    public let path: String
}

/// Why a folder was not brought in sync.
public enum FolderError: Error, Sendable {
    /// The folder cannot be opened, or nothing can be written in it.
    case unusable
    case vault(VaultError)
    case cancelled

    /// Stable, for scripts.
    public var code: String {
        switch self {
        case .unusable: "unusable"
        case .vault: "vault"
        case .cancelled: "cancelled"
        }
    }
}
