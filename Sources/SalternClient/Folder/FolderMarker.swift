/// A file in a folder, `.saltern/folder`. It identifies the folder, and contains its progress at the last sync with
/// each store.
///
/// A folder is an older copy if the line of a store is missing, or lower than the store's number. It was copied from
/// another device's folder, or restored from a backup. Its missing files were not deleted by a user, and its content is
/// not newer.
struct FolderMarker: Equatable {
    let id: ItemID
    /// The highest number of versions without lines, which only compare this number.
    var generation: Int64 = 0
    /// The collection of its files; nil for a marker of an earlier version.
    var collection: String?
    /// The account of the folder; nil for a marker of an earlier version.
    var account: ItemID?
    /// The progress for each store, by the store's name. It grows with every round that changes something.
    private(set) var lines: [ItemID: Int64] = [:]

    /// The highest number; more than the number of rounds.
    static let generationLimit: Int64 = 1 << 53
    /// The maximum number of lines; more than the stores of one folder in practice. Above it the lowest lines are
    /// removed. A folder without a line is rejected, and loses nothing.
    static let lineLimit = 64
    /// The longest marker, in bytes.
    static let byteLimit = 4 << 10
    private static let idByteCount = 36
    /// The number in the line of the account.
    private static let accountNumber: Int64 = 0
    /// The longest name of a collection, in bytes.
    private static let collectionByteLimit = 32

    var text: String {
        let fits = collection.map { $0.utf8.count <= Self.collectionByteLimit } ?? false
        let name = fits ? "\(collection ?? "")\n" : lines.isEmpty && account == nil ? "" : "\n"
        // The account's line is of no store, so earlier versions keep it. The number of a store's line is at least 1.
        let all = lines.merging(account.map { [$0: Self.accountNumber] } ?? [:]) { first, _ in first }
        let stores = all.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
        return "\(id)\n\(generation)\n\(name)\(stores)"
    }

    init(
        id: ItemID, generation: Int64 = 0, collection: String? = nil, account: ItemID? = nil,
        lines: [ItemID: Int64] = [:]
    ) {
        self.id = id
        self.account = account
        self.generation = generation
        self.collection = collection
        self.lines = lines
    }

    /// Sets the line of a store.
    mutating func advance(_ store: ItemID, to generation: Int64) {
        lines[store] = generation
        while lines.count > Self.lineLimit,
            let lowest = lines.filter({ $0.key != store }).min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
        {
            lines[lowest.key] = nil
        }
    }

    /// Parses a marker.
    /// - Returns: nil without a folder's id. A marker with a malformed number or line counts as the oldest.
    init?(_ bytes: some Collection<UInt8>) {
        guard let id = ItemID(String(decoding: bytes.prefix(Self.idByteCount), as: UTF8.self)) else { return nil }
        let rest = String(decoding: bytes.dropFirst(Self.idByteCount), as: UTF8.self)
        let fields = rest.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().map(String.init)
        self.init(id: id)
        var account: ItemID?
        guard rest.hasPrefix("\n"), rest.hasSuffix("\n"), fields.count >= 2, let number = Self.number(fields[0]) else {
            return
        }
        var lines: [ItemID: Int64] = [:]
        for field in fields.dropFirst(2).dropLast() {
            let words = field.split(separator: " ")
            guard words.count == 2, let store = ItemID(String(words[0])), let line = Self.number(String(words[1]))
            else {
                return
            }
            if line == Self.accountNumber { account = store } else { lines[store] = line }
        }
        generation = number
        collection = fields.count >= 3 && !fields[1].isEmpty ? fields[1] : nil
        self.account = account
        self.lines = lines
    }

    private static func number(_ text: String) -> Int64? {
        Int64(text).flatMap { (0...generationLimit).contains($0) ? $0 : nil }
    }
}

/// The progress of a folder at its last sync with a store.
struct FolderGeneration: Equatable {
    var number: Int64 = 0
    /// The names of the store whose lines in the marker count.
    var names: [ItemID] = []
    /// True when the number is that of such a line.
    var hasLine = false
}
