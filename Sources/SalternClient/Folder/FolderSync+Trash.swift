/// Compares the files in the folder's trash again, because a program that has a displaced file open continues to write
/// to it there.
extension FolderSync {
    /// Compares every file in the trash with its content when it was put there. One that was written since returns to
    /// the folder as a conflict copy, and the program that has it open then writes there.
    /// - Returns: True when a file has returned.
    func reviewTrash(_ round: Round, _ report: inout FolderReport) async throws -> Bool {
        guard let names = round.tree.trashNames() else { return false }
        let known = try await records.trashedFiles(in: round.folder)
        let present = Set(names)
        var files = known.filter { present.contains($0.key) }
        var hasReturned = false
        for name in names {
            try Task.checkCancellation()
            if try review(name, &files, round, &report) { hasReturned = true }
        }
        try await records.setTrashed(files, after: known, in: round.folder)
        return hasReturned
    }

    /// Removes expired files from the trash. Each file is read once more before.
    func emptyTrash(_ round: Round, _ report: inout FolderReport) async throws {
        guard let age = try await vault.confirmedAge() else { return }
        let known = try await records.trashedFiles(in: round.folder)
        var files = known
        for (name, file) in known {
            try Task.checkCancellation()
            guard let since = file.since else {
                files[name]?.since = age
                continue
            }
            guard since <= age - Store.keptSeconds else { continue }
            files[name]?.signature = nil
            if try review(name, &files, round, &report) { continue }
            guard files[name]?.digest == file.digest else { continue }
            if round.tree.trashSignature(name) != nil {
                guard round.tree.isRemovable(name, file.digest) else { continue }
                round.tree.removeFromTrash(name)
            }
            files[name] = nil
        }
        try await records.setTrashed(files, after: known, in: round.folder)
    }

    /// Compares one file.
    /// - Returns: True when it has returned to the folder.
    private func review(
        _ name: String, _ files: inout [String: TrashedFile], _ round: Round, _ report: inout FolderReport
    ) throws -> Bool {
        let now = round.tree.timespecNow()
        guard let signature = round.tree.trashSignature(name), files[name]?.signature != signature,
            let digest = round.tree.trashDigest(name)
        else { return false }
        var file = files[name] ?? TrashedFile(path: FolderTree.path(ofTrashName: name), digest: digest)
        if file.digest != digest, !round.has(digest) {
            // A program that rewrites a file empties it first.
            guard signature.byteCount > 0, returnToFolder(name, file.path, round, &report) else { return false }
            files[name] = nil
            return true
        }
        file.digest = digest
        file.signature = round.tree.isYoung(signature, at: now) ? nil : signature
        files[name] = file
        return false
    }

    private func returnToFolder(
        _ name: String, _ path: FolderPath?, _ round: Round, _ report: inout FolderReport
    ) -> Bool {
        guard let path = path ?? FolderTree.path(ofTrashName: name) else { return false }
        let copy = path.conflicting("\(round.writer), \(round.date), \(ItemID.random().description.prefix(8))")
        guard round.tree.bringBack(name, to: copy) else {
            report.warn(.failed, path.text, system.takeFailure())
            return false
        }
        report.conflicts.append(copy)
        return true
    }
}
