// Other programs run an executable file below a name with a leading dot automatically (`.git/hooks/post-checkout`).
// Users do not see it in a listing, and another device of the account may be compromised.

extension FolderView {
    /// Returns the executable files below hidden names that other devices have sent and that are not in the folder yet.
    func arrivingHiddenExecutables() -> [ItemID: FolderPath] {
        remote.filter { id, file in
            file.content.isExecutable && file.path.isHidden && local[file.path] != file.content
                && !(known[id]?.path == file.path && known[id]?.content == file.content)
        }
        .mapValues(\.path)
    }
}

extension FolderPath {
    /// True when a listing without names with a leading dot does not show the file.
    var isHidden: Bool { names.contains { $0.hasPrefix(".") } }
}
