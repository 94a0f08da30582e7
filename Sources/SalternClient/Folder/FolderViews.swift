internal import Cryptography

/// Reads the vault's side of folders.
struct FolderViews: Sendable {
    let owned: OwnedItems

    /// Returns a view with the known states and the content of the vault.
    func folderView(
        _ folder: ItemID, _ collection: String
    ) async throws(VaultError) -> (view: FolderView, warnings: [FolderWarning]) {
        try await owned.perform { store, items in
            try items.checkOpen()
            var view = FolderView()
            var warnings: [FolderWarning] = []
            view.known = try store.folders.knownFiles(in: folder)
            view.knownFolders = try store.knownFolders(in: folder)
            for (id, stamp) in try store.stamps(collection) {
                if let warning = try Self.addRemote(id, stamp, items, to: &view) { warnings.append(warning) }
            }
            try Self.noteBuried(&view, store)
            Self.noteTimes(&view, items)
            return (view, warnings)
        }
    }

    /// Returns the file to download, if it still has this version.
    func file(_ id: ItemID, _ seen: ItemStamp) async throws(VaultError) -> FileVersion? {
        try await owned.perform { store, items in
            guard try store.stamp(id) == seen, let item = try items.item(id) else { return nil }
            return FileVersion(item.body)
        }
    }

    /// Returns a view with the states and items of some paths and items.
    /// - Returns: Also the related paths: the present and last paths of the items.
    func extended(
        _ view: FolderView, by paths: Set<FolderPath>, _ ids: Set<ItemID>, _ folder: ItemID, _ collection: String
    ) async throws(VaultError) -> (view: FolderView, paths: Set<FolderPath>, warnings: [FolderWarning]) {
        try await owned.perform { store, items in
            try items.checkOpen()
            var view = view
            var found: Set<FolderPath> = []
            var warnings: [FolderWarning] = []
            var ids = ids
            for path in paths {
                ids.formUnion(try store.folders.knownFiles(around: path, in: folder))
                ids.formUnion(try store.knownFolders(around: path, in: folder))
            }
            for id in ids where !view.has(id) {
                let (known, stamp) = (try store.folders.knownFile(id, in: folder), try store.stamp(id, in: collection))
                view.known[id] = known
                view.knownFolders[id] = try store.knownFolder(id, in: folder)
                if let stamp, let warning = try Self.addRemote(id, stamp, items, to: &view) { warnings.append(warning) }
                if let path = known?.path { found.insert(path) }
                if let path = view.remote[id]?.path { found.insert(path) }
                if let path = view.knownFolders[id]?.path { found.insert(path) }
                if let path = view.remoteFolders[id]?.path { found.insert(path) }
            }
            return (view, found, warnings)
        }
    }

    /// Returns a view with the required data of files outside of it.
    func finished(_ view: FolderView, _ folder: ItemID) async throws(VaultError) -> FolderView {
        try await owned.perform { store, items in
            var view = view
            try Self.noteBuried(&view, store)
            Self.noteTimes(&view, items)
            view.total = try store.folders.knownFileCount(in: folder)
            let outer = view.known.values.flatMap(\.path.folders) + view.knownFolders.values.flatMap(\.path.folders)
            view.outerFolders = try Self.standing(Set(outer), in: folder, store)
            let ids = Set(view.known.keys)
            // Only for files that may be deleted.
            for (id, known) in view.known where view.local[known.path] == nil || view.remote[id] == nil {
                let digest = known.content.digest
                if view.keptOutside.contains(digest) { continue }
                if try store.folders.isKnown(digest, except: ids, in: folder) { view.keptOutside.insert(digest) }
            }
            return view
        }
    }

    // MARK: Parts of a view

    /// Records the known items that were deleted.
    private static func noteBuried(_ view: inout FolderView, _ store: Store) throws {
        for id in view.known.keys where view.remote[id] == nil && !view.ignored.contains(id) {
            if try store.isBuried(id) { view.buried.insert(id) }
        }
        for id in view.knownFolders.keys where view.remoteFolders[id] == nil && !view.ignored.contains(id) {
            if try store.isBuried(id) { view.buried.insert(id) }
        }
    }

    /// Adds an item to a view that has its known state.
    /// - Returns: The reason for which it is ignored; nil otherwise.
    private static func addRemote(
        _ id: ItemID, _ stamp: ItemStamp, _ items: VaultItems, to view: inout FolderView
    ) throws(VaultError) -> FolderWarning? {
        if let known = view.known[id], known.stamp == stamp {
            view.remote[id] = RemoteFile(path: known.path, content: known.content, stamp: stamp)
            return nil
        }
        if let known = view.knownFolders[id], known.stamp == stamp {
            view.remoteFolders[id] = RemoteFolder(path: known.path, stamp: stamp)
            return nil
        }
        let found: PlainItem?
        do throws(VaultError) {
            found = try items.item(id)
        } catch {
            guard case .unreadable = error else { throw error }
            view.ignored.insert(id)
            return FolderWarning(kind: .unreadableItem, path: id.description)
        }
        guard let found else { return nil }
        if found.body.isEmpty, let path = FolderPath(folderTitle: found.title ?? "") {
            view.remoteFolders[id] = RemoteFolder(path: path, stamp: stamp)
            return nil
        }
        guard let path = try? FolderPath(found.title ?? "") else {
            view.ignored.insert(id)
            return FolderWarning(kind: .refusedTitle, path: id.description)
        }
        view.remote[id] = RemoteFile(path: path, content: FileVersion(found.body).content, stamp: stamp)
        return nil
    }

    /// Reads the times of files with equal names, of which the newest keeps its name. Other times are not needed.
    private static func noteTimes(_ view: inout FolderView, _ items: VaultItems) {
        let sameNames = Dictionary(grouping: view.remote.keys) { view.remote[$0]?.path.text.lowercased() }
        for id in sameNames.values.lazy.filter({ $0.count > 1 }).joined() {
            guard let item = try? items.item(id) else { continue }
            view.remote[id]?.modified = FileVersion(item.body).modified
        }
    }

    /// Returns those of the folders that have items.
    private static func standing(
        _ folders: Set<FolderPath>, in folder: ItemID, _ store: Store
    ) throws -> Set<FolderPath> {
        try folders.filter { try !store.knownFolders(at: $0, in: folder).isEmpty }
    }
}

/// The versions of items.
extension Store {
    /// Returns the versions of a collection's items, without reading their content.
    func stamps(_ collection: String) throws -> [ItemID: ItemStamp] {
        let stamps = try database.rows(
            """
            SELECT id, revision, NULL FROM items i
            WHERE collection = ?1 AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL
            SELECT c.id, i.revision, c.sequence FROM changes c LEFT JOIN items i ON i.id = c.id WHERE c.collection = ?1
            """, .text(collection)
        ) { row in (try Self.id(row, 0), ItemStamp(revision: row.integer(1), sequence: row.integer(2))) }
        return Dictionary(stamps) { _, last in last }
    }

    func stamp(_ id: ItemID) throws -> ItemStamp? {
        if let change = try change(id) {
            return change.content == nil
                ? nil : ItemStamp(revision: try item(id)?.revision.number, sequence: change.sequence)
        }
        return try item(id).map { ItemStamp(revision: $0.revision.number) }
    }

    /// Returns true when an item was deleted. An item that is only missing was not.
    func isBuried(_ id: ItemID) throws -> Bool {
        if let change = try change(id) { return change.content == nil }
        return try item(id) == nil && tombstone(id) != nil
    }

    /// Returns the version of an item in a collection; nil when it has none.
    func stamp(_ id: ItemID, in collection: String) throws -> ItemStamp? {
        try database.rows(
            """
            SELECT revision, NULL FROM items i
            WHERE id = ?1 AND collection = ?2 AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL
            SELECT i.revision, c.sequence FROM changes c LEFT JOIN items i ON i.id = c.id
            WHERE c.id = ?1 AND c.collection = ?2
            """, .blob(id.bytes), .text(collection)
        ) { ItemStamp(revision: $0.integer(0), sequence: $0.integer(1)) }.first
    }
}

extension FolderView {
    fileprivate func has(_ id: ItemID) -> Bool {
        known[id] != nil || remote[id] != nil || knownFolders[id] != nil || remoteFolders[id] != nil
            || ignored.contains(id)
    }
}

/// A version of the vault's file, for writing.
struct FileVersion: Sendable {
    var attachment: Attachment
    var content: FileContent
    var modified: Int64?

    private static let modifiedName = "modified"
    private static let executableName = "executable"

    static func properties(isExecutable: Bool, modified: Int64) -> [String: String] {
        [modifiedName: String(modified), executableName: isExecutable ? "1" : "0"]
    }

    /// Creates a version from an item's body. Any item of the collection is a file. A body that is not an attachment is
    /// the content.
    init(_ body: SecureBytes) {
        attachment =
            Attachment(body)
            ?? Attachment(
                id: .random(), byteCount: Int64(body.count), digest: SHA256.hash(body).bytes, properties: [:],
                chunkByteCount: Attachment.chunkByteCount, chunks: [], inline: body)
        content = FileContent(
            digest: attachment.digest, byteCount: attachment.byteCount,
            isExecutable: attachment.properties[Self.executableName] == "1")
        modified = attachment.properties[Self.modifiedName].flatMap { Int64($0) }
    }
}

extension FolderView {
    /// Returns the executable files below hidden names that other devices have sent and that are not in the folder yet.
    ///
    /// Other programs run an executable file below a name with a leading dot automatically
    /// (`.git/hooks/post-checkout`). Users do not see it in a listing, and another device of the account may be
    /// compromised.
    func arrivingHiddenExecutables() -> [ItemID: FolderPath] {
        remote.filter { id, file in
            file.content.isExecutable && file.path.isHidden && local[file.path] != file.content
                && !(known[id]?.path == file.path && known[id]?.content == file.content)
        }
        .mapValues(\.path)
    }
}
