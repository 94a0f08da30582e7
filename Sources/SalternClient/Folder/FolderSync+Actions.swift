extension FolderSync {
    /// Carries out an action.
    /// - Returns: False when it is not possible now, because of another change or an obstacle.
    func carryOut(
        _ action: FolderAction, _ view: FolderView, _ round: inout Round, _ report: inout FolderReport
    ) async throws -> Bool {
        let (tree, folder) = (round.tree, round.folder)
        switch action {
        case .note(let id, let path, let content):
            let known = KnownFile(path: path, content: content, stamp: view.remote[id]?.stamp)
            try await records.setKnownFile(id, known, in: folder)
        case .forget(let id):
            try await records.setKnownFile(id, nil, in: folder)
        case .upload(let path, let content, let id):
            guard try await upload(path, content, id, view, &round, &report) else { return false }
            report.uploaded.append(path)
        case .download(let id, let path, let over):
            guard try await download(id, path, over, view, round) else { return false }
            report.downloaded.append(path)
        case .moveHere(let id, let from, let to, _):
            guard var known = view.known[id], tree.move(from, to: to) else { return false }
            (known.path, known.stamp) = (to, nil)
            try await records.setKnownFile(id, known, in: folder)
            report.renamed.append(to)
        case .moveThere(let id, let path, let isHere):
            var known = isHere ? view.known[id] : nil
            known?.path = path
            known?.stamp = nil
            guard let seen = view.remote[id]?.stamp,
                try await records.putFile(id, path, nil, over: seen, settings.collection, known: known, in: folder)
            else { return false }
            report.renamed.append(path)
        case .deleteHere(let id, let path, let content):
            let name = FolderTree.trashName(path)
            try await records.noteTrashed(name, TrashedFile(path: path, digest: content.digest), in: folder)
            guard tree.discard(path, content, as: name) else { return false }
            try await records.setKnownFile(id, nil, in: folder)
            report.deletedHere.append(path)
        case .deleteThere(let id), .mergeThere(let id):
            guard let remote = view.remote[id], try await records.deleteFile(id, remote.stamp, in: folder) else {
                return false
            }
            if case .deleteThere = action { report.deletedThere.append(remote.path) }
        case .setExecutable(let id, let path, let isExecutable):
            guard let remote = view.remote[id], tree.setExecutable(path, isExecutable) else { return false }
            // The local change is sent over this version later.
            let known = KnownFile(path: path, content: remote.content, stamp: remote.stamp)
            try await records.setKnownFile(id, known, in: folder)
            report.downloaded.append(path)
        case .moveAside(let from, let to, _):
            guard tree.move(from, to: to) else { return false }
            report.conflicts.append(to)
        case .noteFolder, .forgetFolder, .makeFolderHere, .removeFolderHere, .makeFolderThere, .removeFolderThere:
            return try await carryOutFolder(action, view, round, &report)
        }
        return true
    }
}
