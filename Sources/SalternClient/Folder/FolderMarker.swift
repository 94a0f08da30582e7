/// By which a folder is known again, and how far it was when it was last in sync: a file in it, `.saltern/folder`.
struct FolderMarker: Equatable {
    let id: ItemID
    /// Grows with every round that changes something. A folder that shows less than the store has is an older copy, or
    /// came out of a backup: what it misses, nobody has deleted, and what it has, nobody has written since.
    var generation: Int64 = 0

    /// More than there are rounds.
    static let generationLimit: Int64 = 1 << 53
    /// More than a marker has.
    static let byteLimit = 64
    private static let idByteCount = 36

    var text: String { "\(id)\n\(generation)\n" }

    init(id: ItemID, generation: Int64 = 0) {
        self.id = id
        self.generation = generation
    }

    /// - Returns: nil for what names no folder. A marker without a number that can be read is the oldest.
    init?(_ bytes: some Collection<UInt8>) {
        guard let id = ItemID(String(decoding: bytes.prefix(Self.idByteCount), as: UTF8.self)) else { return nil }
        let rest = String(decoding: bytes.dropFirst(Self.idByteCount), as: UTF8.self)
        let number = rest.hasPrefix("\n") && rest.hasSuffix("\n") ? Int64(rest.dropFirst().dropLast()) : nil
        let isRound = (0...Self.generationLimit).contains(number ?? -1)
        self.init(id: id, generation: isRound ? number ?? 0 : 0)
    }
}
