extension FolderTree {
    /// Creates a folder, and those above it.
    func makeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path, isMade: true), system.makeFolder(name, in: outer),
            system.openFolder(name, in: outer) != nil
        else { return false }
        return system.sync(outer)
    }

    /// Removes an empty folder. One with any entry stays.
    func removeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path), system.removeFolder(name, in: outer) else { return false }
        removeEmptyFolders(above: path)
        return true
    }
}
