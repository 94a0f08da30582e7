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

/// The file with the marker, in the folder `.saltern`.
struct FolderMarkerFile {
    private let system: any FolderSystem
    private let root: Descriptor
    private let corner: Descriptor

    private static let markerName = "folder"
    static let path = FolderPath.corner + "/" + markerName
    /// The prefix of a new marker in the corner. In `parts`, another process would remove it at its start.
    private static let newMarkerPrefix = "marker-"
    /// A day, in nanoseconds.
    private static let abandonedMarkerAge: Int64 = 86_400_000_000_000

    init(_ system: any FolderSystem, _ root: Descriptor, corner: Descriptor) {
        self.system = system
        self.root = root
        self.corner = corner
    }

    /// Returns the marker that identifies the folder.
    func read() -> FolderMarker? { Self.readMarker(in: corner, system) }

    /// Returns the marker of a folder in which nothing is created.
    static func marker(in root: Descriptor, _ system: any FolderSystem) -> FolderMarker? {
        system.openFolder(FolderPath.corner, in: root).flatMap { readMarker(in: $0, system) }
    }

    private static func readMarker(in corner: Descriptor, _ system: any FolderSystem) -> FolderMarker? {
        guard let file = system.openFile(markerName, in: corner) else { return nil }
        var bytes = [UInt8](repeating: 0, count: FolderMarker.byteLimit)
        let count = bytes.withUnsafeMutableBytes { system.read(file, at: 0, into: $0) }
        return count.flatMap { FolderMarker(bytes.prefix($0)) }
    }

    /// True when the file exists and has the executable bit.
    var isExecutable: Bool { system.status(Self.markerName, in: corner)?.isExecutable == true }

    /// The result of a change of the marker.
    enum Change {
        /// The new marker is on the disk.
        case done
        /// There is another marker than the expected one, or another process is changing it.
        case changed
        /// The marker cannot be written.
        case failed
    }

    /// Changes the marker. At any time there is one, except on file systems that can neither exchange nor replace.
    /// - Parameter body: Returns the new marker for the present one; nil to leave it.
    func mark(_ body: (FolderMarker?) -> FolderMarker?) -> Change {
        guard let lock = system.openFolder(FolderPath.corner, in: root) else { return .failed }
        // The lock ends with its descriptor.
        return withExtendedLifetime(lock) {
            guard system.lock(lock) else { return .changed }
            let old = read()
            guard let new = body(old) else { return .changed }
            if old == nil { return claim(new) }
            return write(new) { name in
                system.exchange(name, in: corner, with: Self.markerName, in: corner)
                    || system.rename(name, in: corner, to: Self.markerName, in: corner)
                    || makeMarker(new, isNew: false)
            }
        }
    }

    /// Writes the first marker of a folder. If several processes do so at the same time, one succeeds.
    func claim(_ marker: FolderMarker) -> Change {
        let change = write(marker) { name in
            system.rename(name, in: corner, to: Self.markerName, in: corner) || makeMarker(marker, isNew: true)
        }
        return change == .failed && read() != nil ? .changed : change
    }

    /// Writes a new marker to a file, and calls `body` with its name, which moves it to the marker's place.
    private func write(_ marker: FolderMarker, _ body: (_ name: String) -> Bool) -> Change {
        let name = Self.newMarkerPrefix + ItemID.random().description
        guard let file = system.createFile(name, in: corner) else { return .failed }
        defer { system.removeFile(name, in: corner) }
        return write(marker, to: file) && body(name) && system.sync(corner) ? .done : .failed
    }

    /// Creates the marker on a file system that cannot rename without replacing. If the process ends within it, the
    /// folder has no marker. Nothing is then done in it until a user corrects it.
    private func makeMarker(_ marker: FolderMarker, isNew: Bool) -> Bool {
        if !isNew { system.removeFile(Self.markerName, in: corner) }
        return system.createFile(Self.markerName, in: corner).map { write(marker, to: $0) } ?? false
    }

    private func write(_ marker: FolderMarker, to file: Descriptor) -> Bool {
        Array(marker.text.utf8).withUnsafeBytes { system.write($0, to: file) } && system.sync(file)
    }

    /// Removes new markers that a process has left behind. A younger one may be that of a running process.
    func removeAbandoned() {
        let now = FileSignature.now()
        for name in system.decodedNames(in: corner) where name.hasPrefix(Self.newMarkerPrefix) {
            let changed = system.status(name, in: corner)?.signature.changed ?? now
            if changed < now - Self.abandonedMarkerAge { system.removeFile(name, in: corner) }
        }
    }
}
