/// The state of a folder that an item stands for: an empty folder, or one that was empty when it was sent.
///
/// The title of such an item is the path with a slash at the end, and its body is empty. No file has such a title, so versions
/// without empty folders leave the item alone.
struct KnownFolder: Hashable, Sendable {
    var path: FolderPath
    /// The version of the item that is this; nil when none was seen since.
    var stamp: ItemStamp?
    /// True when the folder was ignored at its last examination; see ``FolderSync/leaveOut(_:_:_:)``.
    var isIgnored = false
}

/// A folder that an item of the vault stands for.
struct RemoteFolder: Hashable, Sendable {
    var path: FolderPath
    var stamp = ItemStamp()
}

extension FolderPath {
    /// Reads the title of an item that stands for a folder, a path with a slash at its end; nil for any other title.
    init?(folderTitle title: String) {
        // In bytes: to Swift the slash can be one character with the mark before it (U+0600).
        guard title.utf8.last == UInt8(ascii: "/"), let path = try? FolderPath(Substring(title.utf8.dropLast())) else {
            return nil
        }
        self = path
    }

    /// The title of an item that stands for a folder.
    var folderTitle: String { text + "/" }
}
