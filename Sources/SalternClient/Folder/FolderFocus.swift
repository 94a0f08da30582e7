/// The part of a folder and its collection that a round examines. All that is outside of it is the same on both sides.
struct FolderFocus: Hashable, Sendable {
    /// Entries of the folder: the bytes of their paths on the disk, from the root. A folder stands for all that is in it.
    var entries: Set<[UInt8]> = []
    /// Items of the collection.
    var items: Set<ItemID> = []

    /// With more than this a walk through the whole folder costs less.
    static let limit = 1_000

    var isEmpty: Bool { entries.isEmpty && items.isEmpty }
    var isTooLarge: Bool { entries.count + items.count > Self.limit }

    mutating func formUnion(_ other: FolderFocus) {
        entries.formUnion(other.entries)
        items.formUnion(other.items)
    }

    /// Returns whether one of the entries is the path, or a folder that the path is in.
    static func covers(_ entries: Set<[UInt8]>, _ path: [UInt8]) -> Bool {
        if entries.contains(path) { return true }
        return path.indices.contains { path[$0] == UInt8(ascii: "/") && entries.contains(Array(path[..<$0])) }
    }
}

/// What the rounds of a watched folder keep of what they do not examine again.
struct FolderMemory: Sendable {
    /// Entries because of which no walk is complete: nothing counts as deleted while there are any.
    var obstacles: Set<[UInt8]> = []
    /// Names that are there and are no files of the folder.
    var skipped: Set<FolderPath> = []
    /// What a round could not do, or held back: each later round examines it.
    var unfinished = FolderFocus()

    /// Replaces what is known of the entries that a walk has examined.
    mutating func take(_ scan: FolderTree.Scan, of entries: Set<[UInt8]>) {
        obstacles = obstacles.filter { !FolderFocus.covers(entries, $0) }.union(scan.obstacles)
        skipped = skipped.filter { !FolderFocus.covers(entries, Array($0.text.utf8)) }.union(scan.skipped)
    }
}
