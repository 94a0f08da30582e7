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

extension FolderTree {
    /// Examines only some entries. One that no longer exists is in no set of the result.
    /// - Parameter entries: The bytes of their paths on the disk.
    func examine(_ entries: Set<[UInt8]>, into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        let now = timespecNow()
        for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            if Task.isCancelled {
                scan.isComplete = false
                break
            }
            // The content of an examined folder is examined with it.
            if Self.isInside(entry, entries) { continue }
            examine(entry, now, &scan, &report)
        }
        return scan
    }

    private static func isInside(_ entry: [UInt8], _ entries: Set<[UInt8]>) -> Bool {
        entry.lastIndex(of: UInt8(ascii: "/")).map { FolderFocus.covers(entries, Array(entry[..<$0])) } ?? false
    }

    private func examine(_ entry: [UInt8], _ now: Int64, _ scan: inout Scan, _ report: inout FolderReport) {
        let names = entry.split(separator: UInt8(ascii: "/")).map { Array($0) }
        guard let last = names.last, names[0] != Array(FolderPath.corner.utf8) else { return }
        var folder = root
        var prefix = ""
        for bytes in names.dropLast() {
            // If a folder on the path cannot be passed, the whole folder is examined.
            guard let name = String(validating: bytes, as: UTF8.self), let path = try? FolderPath(prefix + name),
                Array(path.text.utf8) == Array(prefix.utf8) + bytes,
                let inner = system.openFolder(name, in: folder), system.status(inner)?.st_dev == device,
                Self.marker(in: inner, system) == nil
            else {
                if isLeftOut(bytes, in: Self.names(of: prefix)) { return }
                return visit(named: bytes, folder, prefix, now, &scan, &report)
            }
            folder = inner
            prefix = path.text + "/"
        }
        if isLeftOut(last, in: Self.names(of: prefix)) { return }
        visit(named: last, folder, prefix, now, &scan, &report)
    }

    /// Examines an entry that may not exist.
    private func visit(
        named bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan,
        _ report: inout FolderReport
    ) {
        let path = String(validating: bytes, as: UTF8.self).flatMap { try? FolderPath(prefix + $0) }
        // A name in another form would be renamed to NFC, which gives no information when the entry does not exist.
        let isUsual = path.map { Array($0.text.utf8) == Array(prefix.utf8) + bytes } ?? false
        if !isUsual, let names = system.names(in: folder), !names.contains(bytes) {
            return noteIfEmpty(folder, prefix, &scan)
        }
        visit(bytes, folder, prefix, now, &scan, &report)
        if let path, scan.files[path] != nil || scan.folders.contains(path) { return }
        noteIfEmpty(folder, prefix, &scan)
    }

    /// Records the folder of a possibly missing entry if it is empty, because it is in no other entry. It lists each
    /// folder once.
    private func noteIfEmpty(_ folder: Descriptor, _ prefix: String, _ scan: inout Scan) {
        guard let path = FolderPath(folderTitle: prefix), scan.listedFolders.insert(path).inserted,
            system.names(in: folder)?.isEmpty == true
        else { return }
        scan.folders.insert(path)
        noteEmpty(path, &scan)
    }
}
