/// The actions for empty folders, after those for files. It is pure.
///
/// An item represents a folder that was empty at its examination. The item stays when the folder gets files, and is
/// deleted with the folder. A folder with any entry is never removed.
struct EmptyFolderDecision {
    private let view: FolderView
    private var actions: [FolderAction] = []
    private let folders: Set<[UInt8]>
    private let empty: Set<[UInt8]>
    private let files: Set<[UInt8]>
    private let remoteFiles: Set<[UInt8]>

    static func decide(_ view: FolderView) -> [FolderAction] {
        if view.remoteFolders.isEmpty, view.knownFolders.isEmpty, view.emptyFolders.isEmpty { return [] }
        var decision = EmptyFolderDecision(view)
        decision.decideRemote()
        decision.decideGone()
        decision.decideNew()
        return decision.actions
    }

    private init(_ view: FolderView) {
        func key(_ path: FolderPath) -> [UInt8] { Self.key(path, view) }
        self.view = view
        folders = Set(view.folders.map(key))
        empty = Set(view.emptyFolders.map(key))
        files = Set(view.local.keys.map(key))
        remoteFiles = Set(view.remote.filter { !view.ignored.contains($0.key) }.values.map { key($0.path) })
    }

    private static func key(_ path: FolderPath, _ view: FolderView) -> [UInt8] {
        Array(view.foldsCase ? path.text.lowercased().utf8 : path.text.utf8)
    }

    private func key(_ path: FolderPath) -> [UInt8] { Self.key(path, view) }

    /// Returns true when one of the files has the path, or that of a folder above it.
    private func isTaken(_ path: FolderPath, by files: Set<[UInt8]>) -> Bool {
        !files.isEmpty && ([path] + path.folders).contains { files.contains(key($0)) }
    }

    private mutating func decideRemote() {
        var seen: Set<FolderPath> = []
        for (id, remote) in view.remoteFolders.sorted(by: { ($0.value.path, $0.key) < ($1.value.path, $1.key) })
        where !view.ignored.contains(id) {
            let (path, known) = (remote.path, view.knownFolders[id])
            if !seen.insert(path).inserted || isTaken(path, by: remoteFiles) {
                // Another item has the same path, or a file has the name and is kept.
                actions.append(.removeFolderThere(id))
            } else if folders.contains(key(path)) {
                if known?.path != path || known?.stamp != remote.stamp { actions.append(.noteFolder(id, path)) }
            } else if known?.path == path {
                if view.isWalkComplete { actions.append(.removeFolderThere(id)) }
            } else if !isTaken(path, by: files) {
                actions.append(.makeFolderHere(id, path))
            }
        }
    }

    /// Decides about folders whose items were deleted. A folder with another item stays. Two devices may have created
    /// it at the same time, or another device has changed the spelling of its name.
    private mutating func decideGone() {
        let standing = Set(view.remoteFolders.values.map { key($0.path) })
        let vanishing = VanishingFolders(view, key)
        for (id, known) in view.knownFolders.sorted(by: { $0.value.path > $1.value.path })
        where view.remoteFolders[id] == nil && !view.ignored.contains(id) {
            let name = key(known.path)
            if !view.buried.contains(id) || !folders.contains(name) || standing.contains(name) {
                actions.append(.forgetFolder(id))
            } else if view.isWalkComplete {
                if empty.contains(name) {
                    actions.append(.removeFolderHere(id, known.path))
                } else if !vanishing.contains(name) {
                    actions.append(.forgetFolder(id))
                }
            }
        }
    }

    private mutating func decideNew() {
        let known = Set((view.knownFolders.values.map(\.path) + view.remoteFolders.values.map(\.path)).map(key))
        for path in view.emptyFolders.sorted()
        where !known.contains(key(path)) && !isTaken(path, by: remoteFiles) {
            actions.append(.makeFolderThere(path))
        }
    }
}

/// Folders that contain only folders which are removed. They become empty in a later pass.
private struct VanishingFolders {
    private var outer: Set<[UInt8]> = []
    private var staying: Set<[UInt8]> = []

    init(_ view: FolderView, _ key: (FolderPath) -> [UInt8]) {
        let gone = view.knownFolders.filter { view.remoteFolders[$0.key] == nil && view.buried.contains($0.key) }
            .values.map(\.path)
        if gone.isEmpty { return }
        let removed = Set(gone.map(key)).union(gone.flatMap { $0.folders.map(key) })
        for path in view.local.keys { staying.formUnion(path.folders.map(key)) }
        for path in view.folders {
            let folders = path.folders.map(key)
            outer.formUnion(folders)
            if !removed.contains(key(path)) { staying.formUnion(folders) }
        }
    }

    func contains(_ key: [UInt8]) -> Bool { outer.contains(key) && !staying.contains(key) }
}
