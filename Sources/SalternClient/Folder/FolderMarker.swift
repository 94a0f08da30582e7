/// By which a folder is known again, and how far it was when it was last in sync: a file in it, `.saltern/folder`.
struct FolderMarker: Equatable {
    let id: ItemID
    /// Grows with every round that changes something. A folder that shows less than the store has is an older copy, or
    /// came out of a backup: what it misses, nobody has deleted, and what it has, nobody has written since.
    var generation: Int64 = 0
    /// That of its files; nil where an earlier version has written the marker.
    var collection: String?

    /// More than there are rounds.
    static let generationLimit: Int64 = 1 << 53
    /// More than a marker has.
    static let byteLimit = 96
    private static let idByteCount = 36
    /// No collection has a longer name.
    private static let collectionByteLimit = 32

    var text: String {
        let name = collection.flatMap { $0.utf8.count > Self.collectionByteLimit ? nil : "\($0)\n" }
        return "\(id)\n\(generation)\n\(name ?? "")"
    }

    init(id: ItemID, generation: Int64 = 0, collection: String? = nil) {
        self.id = id
        self.generation = generation
        self.collection = collection
    }

    /// - Returns: nil for what names no folder. A marker without a number that can be read is the oldest.
    init?(_ bytes: some Collection<UInt8>) {
        guard let id = ItemID(String(decoding: bytes.prefix(Self.idByteCount), as: UTF8.self)) else { return nil }
        let rest = String(decoding: bytes.dropFirst(Self.idByteCount), as: UTF8.self)
        let lines = rest.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
        let isWhole = rest.hasPrefix("\n") && rest.hasSuffix("\n") && (2...3).contains(lines.count)
        let number = isWhole ? lines.first.flatMap { Int64($0) } : nil
        let isRound = (0...Self.generationLimit).contains(number ?? -1)
        self.init(
            id: id, generation: isRound ? number ?? 0 : 0,
            collection: isRound && lines.count == 3 ? lines.dropFirst().first.map(String.init) : nil)
    }
}
