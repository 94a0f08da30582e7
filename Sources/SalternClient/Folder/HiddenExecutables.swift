// A program beneath a name that begins with a dot (`.git/hooks/post-checkout`) is run by other programs without being asked for.
// A person does not see it in a listing, and another device of the account may have been taken over.

extension FolderView {
    /// Returns the executable files beneath hidden names that other devices have sent and that are not in the folder yet.
    func arrivingHiddenExecutables() -> [ItemID: FolderPath] {
        remote.filter { id, file in
            file.content.isExecutable && file.path.isHidden && local[file.path] != file.content
                && !(known[id]?.path == file.path && known[id]?.content == file.content)
        }
        .mapValues(\.path)
    }
}

extension FolderPath {
    /// True when a listing that leaves out names with a leading dot does not show the file.
    var isHidden: Bool { names.contains { $0.hasPrefix(".") } }
}
