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
