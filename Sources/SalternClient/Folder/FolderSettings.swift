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
