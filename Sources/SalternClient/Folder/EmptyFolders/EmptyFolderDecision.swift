/// What is done with empty folders, once nothing is to be done with files. Pure.
///
/// An item stands for a folder that was empty when it was examined. It stays when files come into the folder, and goes with the
/// folder. A folder that holds anything is never removed.
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

    /// Returns whether one of the files has the path, or that of a folder that the path is in.
    private func isTaken(_ path: FolderPath, by files: Set<[UInt8]>) -> Bool {
        !files.isEmpty && ([path] + path.folders).contains { files.contains(key($0)) }
    }

    private mutating func decideRemote() {
        var seen: Set<FolderPath> = []
        for (id, remote) in view.remoteFolders.sorted(by: { ($0.value.path, $0.key) < ($1.value.path, $1.key) })
        where !view.ignored.contains(id) {
            let (path, known) = (remote.path, view.knownFolders[id])
            if !seen.insert(path).inserted || isTaken(path, by: remoteFiles) {
                // Another item says the same, or a file has the name: that is kept.
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

    /// Folders whose items are gone.
    private mutating func decideGone() {
        for (id, known) in view.knownFolders.sorted(by: { $0.value.path > $1.value.path })
        where view.remoteFolders[id] == nil && !view.ignored.contains(id) {
            if !view.buried.contains(id) || !folders.contains(key(known.path)) {
                actions.append(.forgetFolder(id))
            } else if view.isWalkComplete {
                if empty.contains(key(known.path)) {
                    actions.append(.removeFolderHere(id, known.path))
                } else if !goesAway(known.path) {
                    actions.append(.forgetFolder(id))
                }
            }
        }
    }

    /// Returns whether nothing is in a folder but folders that are removed.
    private func goesAway(_ path: FolderPath) -> Bool {
        let gone = Set(
            view.knownFolders.filter { view.remoteFolders[$0.key] == nil && view.buried.contains($0.key) }.values.map(
                \.path))
        if view.local.keys.contains(where: { $0.folders.contains(path) }) { return false }
        let inner = view.folders.filter { $0.folders.contains(path) }
        return !inner.isEmpty
            && inner.allSatisfy { folder in
                gone.contains(folder) || gone.contains { $0.folders.contains(folder) }
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
