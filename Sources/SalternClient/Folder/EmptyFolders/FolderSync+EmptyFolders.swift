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
            guard tree.makeFolder(path) else { return false }
            let known = KnownFolder(path: path, stamp: view.remoteFolders[id]?.stamp)
            try await records.setKnownFolder(id, known, in: folder)
            report.fetchedFolders.append(path)
        case .removeFolderHere(let id, let path):
            let isRemoved = tree.removeFolder(path)
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
