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

    /// Decides about folders of deleted items. A folder with another item stays. Two devices may have created
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

/// Syncs empty folders, each by a separate item.
extension FolderSync {
    /// Carries out an action for a folder.
    /// - Returns: False when it is not possible now.
    func carryOutFolder(
        _ action: FolderAction, _ view: FolderView, _ round: Round, _ report: inout FolderReport
    ) async throws -> Bool {
        let (tree, folder) = (round.tree, round.folder)
        switch action {
        case .noteFolder(let id, let path):
            let known = KnownFolder(path: path, stamp: view.remoteFolders[id]?.stamp)
            try await records.setKnownFolder(id, known, in: folder)
        case .forgetFolder(let id): try await records.setKnownFolder(id, nil, in: folder)
        case .makeFolderHere(let id, let path):
            guard tree.root.makeFolder(path) else { return false }
            let known = KnownFolder(path: path, stamp: view.remoteFolders[id]?.stamp)
            try await records.setKnownFolder(id, known, in: folder)
            report.fetchedFolders.append(path)
        case .removeFolderHere(let id, let path):
            let isRemoved = tree.root.removeFolder(path)
            // If the folder has got an entry since, it stays. It is sent again when it is empty.
            try await records.setKnownFolder(id, nil, in: folder)
            if isRemoved { report.removedFoldersHere.append(path) }
        case .makeFolderThere(let path):
            try await records.putFolder(path, settings.collection, in: folder)
            report.sentFolders.append(path)
        case .removeFolderThere(let id):
            guard let remote = view.remoteFolders[id],
                try await records.deleteFolder(id, remote.stamp, in: folder)
            else { return false }
            if view.knownFolders[id] != nil { report.removedFoldersThere.append(remote.path) }
        default: return false
        }
        return true
    }
}

/// Folders that have items.
extension Store {
    private static let folderColumns = "id, path, revision, sequence, ignored"

    private static func knownFolder(_ row: SQLiteRow) throws -> (ItemID, KnownFolder) {
        guard let text = row.text(1), let path = try? FolderPath(text) else { throw StoreError.damaged }
        let stamp = ItemStamp(revision: row.integer(2), sequence: row.integer(3))
        return (
            try id(row, 0),
            KnownFolder(path: path, stamp: stamp == ItemStamp() ? nil : stamp, isIgnored: row.integer(4) == 1)
        )
    }

    func knownFolders(in folder: ItemID) throws -> [ItemID: KnownFolder] {
        let folders = try database.rows(
            "SELECT \(Self.folderColumns) FROM folder_folders WHERE folder = ?", .blob(folder.bytes),
            decode: Self.knownFolder)
        return Dictionary(folders) { _, last in last }
    }

    func knownFolder(_ id: ItemID, in folder: ItemID) throws -> KnownFolder? {
        try database.rows(
            "SELECT \(Self.folderColumns) FROM folder_folders WHERE folder = ? AND id = ?", .blob(folder.bytes),
            .blob(id.bytes), decode: Self.knownFolder
        ).first?.1
    }

    /// Returns the items of the folder at a path and of those below it.
    func knownFolders(around path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        try knownFolders(at: path, in: folder)
            + database.rows(
                "SELECT id FROM folder_folders WHERE folder = ? AND path > ? AND path < ?", .blob(folder.bytes),
                .text(path.text + "/"), .text(path.text + "0")
            ) { try Self.id($0, 0) }
    }

    /// Returns the items of the folder at a path.
    func knownFolders(at path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        try database.rows(
            "SELECT id FROM folder_folders WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(path.text)
        ) { try Self.id($0, 0) }
    }

    /// Stores the state of a folder, or removes it with nil.
    func setKnownFolder(_ id: ItemID, _ known: KnownFolder?, in folder: ItemID) throws {
        guard let known else {
            try database.execute(
                "DELETE FROM folder_folders WHERE folder = ? AND id = ?", .blob(folder.bytes), .blob(id.bytes))
            return
        }
        try database.execute(
            """
            INSERT OR REPLACE INTO folder_folders (folder, id, path, revision, sequence, ignored)
            VALUES (?, ?, ?, ?, ?, ?)
            """, .blob(folder.bytes), .blob(id.bytes), .text(known.path.text), .optional(known.stamp?.revision),
            .optional(known.stamp?.sequence), .integer(known.isIgnored ? 1 : 0))
    }
}
