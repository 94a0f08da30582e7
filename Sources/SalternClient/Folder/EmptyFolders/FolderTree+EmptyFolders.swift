extension FolderTree {
    /// Makes a folder, and those that it is in.
    func makeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path, isMade: true), system.makeFolder(name, in: outer),
            system.openFolder(name, in: outer) != nil
        else { return false }
        return system.sync(outer)
    }

    /// Removes a folder in which nothing is. One that holds anything stays.
    func removeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path), system.removeFolder(name, in: outer) else { return false }
        removeEmptyFolders(above: path)
        return true
    }
}
