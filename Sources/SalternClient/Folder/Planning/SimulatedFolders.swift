/// The folders of a simulation. They are created with their content, and removed when they become empty.
struct SimulatedFolders {
    /// The number of entries of each folder.
    private var entries: [FolderPath: Int] = [:]
    /// Folders that have items and therefore stay.
    private var standing: Set<FolderPath> = []

    /// - Parameter occupied: Folders with entries that are neither files nor folders of the view. They never become
    ///   empty.
    init(_ view: FolderView, occupied: Set<FolderPath>) {
        for path in view.local.keys { count(path) }
        for path in view.folders { count(path) }
        for folder in occupied { entries[folder, default: 0] += 1 }
        standing = Set(view.remoteFolders.values.map(\.path))
    }

    private mutating func count(_ path: FolderPath) {
        if let outer = path.folders.last { entries[outer, default: 0] += 1 }
    }

    /// Records that a folder has, or no longer has, an item.
    mutating func setStanding(_ folder: FolderPath, _ isStanding: Bool) {
        if isStanding { standing.insert(folder) } else { standing.remove(folder) }
    }

    /// Records a new file or folder.
    mutating func add(_ path: FolderPath, _ view: inout FolderView) {
        for folder in path.folders.reversed() {
            entries[folder, default: 0] += 1
            view.emptyFolders.remove(folder)
            if !view.folders.insert(folder).inserted { return }
        }
    }

    /// Records a removed file or folder.
    mutating func remove(_ path: FolderPath, _ view: inout FolderView) {
        for folder in path.folders.reversed() {
            entries[folder, default: 1] -= 1
            if entries[folder, default: 0] > 0 { return }
            if standing.contains(folder) {
                view.emptyFolders.insert(folder)
                return
            }
            view.folders.remove(folder)
            view.emptyFolders.remove(folder)
        }
    }
}
