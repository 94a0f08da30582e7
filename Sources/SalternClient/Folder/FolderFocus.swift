internal import Foundation

/// The part of a folder and its collection that a round examines. Both sides are equal outside of it.
struct FolderFocus: Hashable, Sendable {
    /// Entries of the folder: the bytes of their paths on the disk, from the root. A folder includes all of its
    /// content.
    var entries: Set<[UInt8]> = []
    /// Items of the collection.
    var items: Set<ItemID> = []

    /// The largest focus. Above it, examining the whole folder is faster.
    static let limit = 1_000

    var isEmpty: Bool { entries.isEmpty && items.isEmpty }
    var isTooLarge: Bool { entries.count + items.count > Self.limit }

    mutating func formUnion(_ other: FolderFocus) {
        entries.formUnion(other.entries)
        items.formUnion(other.items)
    }

    /// Returns true when one of the entries is the path, or a folder above it.
    static func covers(_ entries: Set<[UInt8]>, _ path: [UInt8]) -> Bool {
        if entries.contains(path) { return true }
        return path.indices.contains { path[$0] == UInt8(ascii: "/") && entries.contains(Array(path[..<$0])) }
    }
}

/// The results that later rounds of a watched folder reuse.
struct FolderMemory: Sendable {
    /// Entries that make every examination incomplete. While there are any, no missing file counts as deleted.
    var obstacles: Set<[UInt8]> = []
    /// Names of entries that are not files of the folder.
    var skipped: Set<FolderPath> = []
    /// Failed or held actions, which each later round examines.
    var unfinished = FolderFocus()

    /// Replaces the results of the examined entries.
    mutating func take(_ scan: FolderTree.Scan, of entries: Set<[UInt8]>) {
        obstacles = obstacles.filter { !FolderFocus.covers(entries, $0) }.union(scan.obstacles)
        skipped = skipped.filter { !FolderFocus.covers(entries, Array($0.text.utf8)) }.union(scan.skipped)
    }
}

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
