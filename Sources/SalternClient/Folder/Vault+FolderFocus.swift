/// The vault's part of a view with only some of the files.
extension Vault {
    /// Returns a view with the states and items of some paths and items.
    /// - Returns: Also the related paths: the present and last paths of the items.
    func extended(
        _ view: FolderView, by paths: some Sequence<FolderPath>, _ items: some Sequence<ItemID>,
        _ folder: ItemID, _ collection: String
    ) throws(VaultError) -> (view: FolderView, paths: Set<FolderPath>, warnings: [FolderWarning]) {
        _ = try open
        var view = view
        var found: Set<FolderPath> = []
        var warnings: [FolderWarning] = []
        var ids = Set(items)
        try stored {
            for path in paths {
                ids.formUnion(try store.knownFiles(around: path, in: folder))
                ids.formUnion(try store.knownFolders(around: path, in: folder))
            }
        }
        for id in ids where !view.has(id) {
            let (known, stamp) = try stored {
                (try store.knownFile(id, in: folder), try store.stamp(id, in: collection))
            }
            view.known[id] = known
            view.knownFolders[id] = try stored { try store.knownFolder(id, in: folder) }
            if let stamp, let warning = try addRemote(id, stamp, to: &view) { warnings.append(warning) }
            if let path = known?.path { found.insert(path) }
            if let path = view.remote[id]?.path { found.insert(path) }
            if let path = view.knownFolders[id]?.path { found.insert(path) }
            if let path = view.remoteFolders[id]?.path { found.insert(path) }
        }
        return (view, found, warnings)
    }

    /// Returns a view with the required data of files outside of it.
    func finished(_ view: FolderView, _ folder: ItemID) throws(VaultError) -> FolderView {
        var view = view
        try noteBuried(&view)
        noteTimes(&view)
        view.total = try stored { try store.knownFileCount(in: folder) }
        let outer = view.known.values.flatMap(\.path.folders) + view.knownFolders.values.flatMap(\.path.folders)
        view.outerFolders = try standing(Set(outer), in: folder)
        let ids = Set(view.known.keys)
        // Only for files that may be deleted.
        for (id, known) in view.known where view.local[known.path] == nil || view.remote[id] == nil {
            let digest = known.content.digest
            if view.keptOutside.contains(digest) { continue }
            if try stored({ try store.isKnown(digest, except: ids, in: folder) }) { view.keptOutside.insert(digest) }
        }
        return view
    }

    /// Returns the stored digests of the files at some paths, and below them.
    func fileHashes(
        at paths: some Sequence<FolderPath>, in folder: ItemID
    ) throws(VaultError) -> [FolderPath: FolderTree.KnownHash] {
        try stored {
            var hashes: [FolderPath: FolderTree.KnownHash] = [:]
            for path in paths { hashes.merge(try store.fileHashes(at: path, in: folder)) { _, last in last } }
            return hashes
        }
    }
}

extension FolderView {
    fileprivate func has(_ id: ItemID) -> Bool {
        known[id] != nil || remote[id] != nil || knownFolders[id] != nil || remoteFolders[id] != nil
            || ignored.contains(id)
    }
}
