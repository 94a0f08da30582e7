/// Builds the view of a round with a focus.
extension FolderSync {
    private static let steps = 16

    /// Examines the entries and items of a focus. It includes all entries and items of the same names, below them, or
    /// in place of a folder above them.
    /// - Returns: nil when there are too many.
    func view(
        of focus: FolderFocus, _ round: inout Round, _ report: inout FolderReport
    ) async throws -> FolderView? {
        var view = FolderView()
        var scan = FolderTree.Scan()
        var before: [FolderPath: FolderTree.KnownHash] = [:]
        var items = focus.items
        var next = focus.entries
        round.examined = []
        for _ in 0..<Self.steps {
            let paths = next.compactMap { bytes in
                String(validating: bytes, as: UTF8.self).flatMap { try? FolderPath($0) }
            }
            before.merge(try await records.fileHashes(at: paths, in: round.folder)) { _, last in last }
            round.tree.hashes = before
            let part = round.tree.examine(next, into: &report)
            try Task.checkCancellation()
            round.examined.formUnion(next)
            scan.formUnion(part)
            let extended = try await views.extended(
                view, by: Set(paths).union(part.files.keys).union(part.folders), items, round.folder,
                settings.collection)
            view = extended.view
            for warning in extended.warnings { report.warn(warning.kind, warning.path) }
            items = []
            next = Set(extended.paths.map { Array($0.text.utf8) }).subtracting(round.examined)
            if round.examined.count + next.count > 2 * FolderFocus.limit { return nil }
            if next.isEmpty { break }
        }
        guard next.isEmpty else { return nil }
        try await records.setFileHashes(scan.hashes, after: before, in: round.folder)
        let wasBlocked = !round.memory.obstacles.isEmpty
        round.memory.take(scan, of: round.examined)
        // A focus does not contain files that were deleted in the meantime.
        if wasBlocked && round.memory.obstacles.isEmpty { round.needsWhole = true }
        view.take(scan)
        view.isWalkComplete = scan.isComplete && round.memory.obstacles.isEmpty
        settlePending(&view)
        try await leaveOut(&view, &round, &report)
        view = try await views.finished(view, round.folder)
        complete(&view, round, &report)
        return view
    }
}

extension FolderTree.Scan {
    fileprivate mutating func formUnion(_ other: Self) {
        files.merge(other.files) { _, last in last }
        skipped.formUnion(other.skipped)
        obstacles.formUnion(other.obstacles)
        ignored.formUnion(other.ignored)
        folders.formUnion(other.folders)
        emptyFolders.formUnion(other.emptyFolders)
        hashes.merge(other.hashes) { _, last in last }
        if !other.isComplete { isComplete = false }
    }
}
