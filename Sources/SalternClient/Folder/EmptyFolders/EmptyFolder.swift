/// The stored state of a folder that has an item: an empty folder, or one that was empty when it was sent.
///
/// The title of such an item is the path with a slash at the end, and its body is empty. No file has such a title, so
/// versions without empty folders ignore the item.
struct KnownFolder: Hashable, Sendable {
    var path: FolderPath
    /// The version of the item in this state; nil when none was received since.
    var stamp: ItemStamp?
    /// True when the folder was ignored at its last examination; see ``FolderSync/leaveOut(_:_:_:)``.
    var isIgnored = false
}

/// A folder that has an item in the vault.
struct RemoteFolder: Hashable, Sendable {
    var path: FolderPath
    var stamp = ItemStamp()
}

extension FolderPath {
    /// Parses the title of a folder's item, a path with a slash at its end; nil for any other title.
    init?(folderTitle title: String) {
        // In bytes: Swift can combine the slash with the preceding mark (U+0600) into one character.
        guard title.utf8.last == UInt8(ascii: "/"), let path = try? FolderPath(Substring(title.utf8.dropLast())) else {
            return nil
        }
        self = path
    }

    /// The title of the folder's item.
    var folderTitle: String { text + "/" }
}
