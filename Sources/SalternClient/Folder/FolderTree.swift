internal import Cryptography
internal import Foundation

/// A folder on the disk. All entries are reached from its root, without following links.
final class FolderTree {
    /// The result of an examination.
    struct Scan {
        var files: [FolderPath: FileContent] = [:]
        /// Names of entries that are not files of the folder.
        var skipped: Set<FolderPath> = []
        var isComplete = true
        /// The entries that make it incomplete: their paths on the disk.
        var obstacles: Set<[UInt8]> = []
        /// Files whose content need not be read again, with their data and digest.
        var hashes: [FolderPath: KnownHash] = [:]
        /// Entries that are ignored: the bytes of their paths, those of folders with a slash at the end. The content of
        /// ignored folders is not listed.
        var ignored: Set<[UInt8]> = []
        /// The existing folders, and those of them that are empty.
        var folders: Set<FolderPath> = []
        var emptyFolders: Set<FolderPath> = []
        /// Folders that a round with a focus has listed only to check that they are empty.
        var listedFolders: Set<FolderPath> = []

        mutating func block(_ path: [UInt8]) {
            isComplete = false
            obstacles.insert(path)
        }
    }

    let system: any FolderSystem
    let root: Descriptor
    let device: dev_t
    let corner: Descriptor
    let parts: Descriptor
    let trash: Descriptor
    /// Folders that have items, by their names in the form that the file system compares. They stay when they become
    /// empty.
    private var kept: Set<[UInt8]> = []
    /// True when nothing may be changed.
    private(set) var isReading = false
    let rules: FolderRules
    /// The stored digest of each file, for unchanged files.
    var hashes: [FolderPath: KnownHash] = [:]
    /// Receives the number of bytes that examinations have read, after each piece.
    var onRead: (Int) -> Void = { _ in }
    private var readCount = 0
    /// The names in `parts` of downloads that were interrupted since this tree was opened.
    var unfinishedFetches: Set<String> = []

    struct KnownHash: Hashable {
        var signature: FileSignature
        var digest: [UInt8]
    }

    static let trashFolder = "trash"
    private static let partsFolder = "parts"
    private static let markerName = "folder"
    static let markerPath = FolderPath.corner + "/" + markerName
    /// The lowest precision of a disk's clock, in nanoseconds.
    private static let youth: Int64 = 2_000_000_000
    /// The longest time by which the clock of a network disk may be ahead, in nanoseconds.
    private static let clockDifference: Int64 = 3_600_000_000_000

    /// Returns true when a file could be written again without a visible change of the kernel's data. Any program can
    /// set the time of the last write, even to a future one. Every write also sets the other time to the present.
    ///
    /// A last change in the far future was made by a wrong clock, which any later change replaces. A server's clock may
    /// be ahead by less than that.
    func isYoung(_ signature: FileSignature, at now: Int64) -> Bool {
        let changed = signature.changed <= now + Self.clockDifference ? signature.changed : .min
        return max(signature.modified <= now ? signature.modified : .min, changed) >= now - Self.youth
    }

    init(_ path: String, _ system: any FolderSystem = DiskFolders()) throws(FolderError) {
        guard let root = system.openRoot(path), let status = system.status(root),
            let corner = Self.folder(FolderPath.corner, in: root, system),
            let parts = Self.folder(Self.partsFolder, in: corner, system),
            let trash = Self.folder(Self.trashFolder, in: corner, system)
        else { throw .unusable }
        self.system = system
        self.root = root
        device = status.st_dev
        self.corner = corner
        self.parts = parts
        self.trash = trash
        rules = FolderRules(system, root, status.st_dev)
    }

    /// Opens a folder for a plan: nothing is created in it. Only functions that read may be called.
    init(reading path: String, _ system: any FolderSystem) throws(FolderError) {
        guard let root = system.openRoot(path), let status = system.status(root) else { throw .unusable }
        self.system = system
        self.root = root
        device = status.st_dev
        // A folder that was never synced has none of these. The root in their place is not used.
        corner = system.openFolder(FolderPath.corner, in: root) ?? root
        parts = system.openFolder(Self.partsFolder, in: corner) ?? root
        trash = system.openFolder(Self.trashFolder, in: corner) ?? root
        isReading = true
        rules = FolderRules(system, root, status.st_dev)
    }

    private static func folder(_ name: String, in folder: Descriptor, _ system: any FolderSystem) -> Descriptor? {
        guard system.makeFolder(name, in: folder) else { return nil }
        return system.openFolder(name, in: folder)
    }

    // MARK: Marker

    /// Returns the marker that identifies the folder.
    func marker() -> FolderMarker? { Self.readMarker(in: corner, system) }

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

    /// The result of a change of the marker.
    enum MarkerChange {
        /// The new marker is on the disk.
        case done
        /// There is another marker than the expected one, or another process is changing it.
        case changed
        /// The marker cannot be written.
        case failed
    }

    /// Changes the marker. At any time there is one, except on file systems that can neither exchange nor replace.
    /// - Parameter body: Returns the new marker for the present one; nil to leave it.
    func mark(_ body: (FolderMarker?) -> FolderMarker?) -> MarkerChange {
        guard let lock = system.openFolder(FolderPath.corner, in: root) else { return .failed }
        // The lock ends with its descriptor.
        return withExtendedLifetime(lock) {
            guard system.lock(lock) else { return .changed }
            let old = marker()
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
    func claim(_ marker: FolderMarker) -> MarkerChange {
        let change = write(marker) { name in
            system.rename(name, in: corner, to: Self.markerName, in: corner) || makeMarker(marker, isNew: true)
        }
        return change == .failed && self.marker() != nil ? .changed : change
    }

    /// Writes a new marker to a file, and calls `body` with its name, which moves it to the marker's place.
    private func write(_ marker: FolderMarker, _ body: (_ name: String) -> Bool) -> MarkerChange {
        let name = Self.newMarkerPrefix + ItemID.random().description
        guard let file = system.createFile(name, in: corner) else { return .failed }
        defer { system.removeFile(name, in: corner) }
        return write(marker, to: file) && body(name) && system.sync(corner) ? .done : .failed
    }

    /// The prefix of a new marker in the corner. In `parts`, another process would remove it at its start.
    static let newMarkerPrefix = "marker-"

    /// Creates the marker on a file system that cannot rename without replacing. If the process ends within it, the
    /// folder has no marker. Nothing is then done in it until a user corrects it.
    private func makeMarker(_ marker: FolderMarker, isNew: Bool) -> Bool {
        if !isNew { system.removeFile(Self.markerName, in: corner) }
        return system.createFile(Self.markerName, in: corner).map { write(marker, to: $0) } ?? false
    }

    private func write(_ marker: FolderMarker, to file: Descriptor) -> Bool {
        Array(marker.text.utf8).withUnsafeBytes { system.write($0, to: file) } && system.sync(file)
    }

    /// True when the file system treats "a" and "A" as one name.
    private(set) lazy var folds: Bool = {
        if corner === root { return false }
        // A separate folder of that name may exist.
        guard let other = system.status(FolderPath.corner.uppercased(), in: root),
            let own = system.status(corner)
        else { return false }
        return (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino)
    }()

    /// The executable bits of files on a file system.
    enum ExecutableBits {
        case stored
        /// Every file has the bit, as on some mounts.
        case alwaysSet
        case neverSet
    }

    /// The executable bits of files in this folder.
    private(set) lazy var executableBits: ExecutableBits = {
        if isReading {
            // The marker is created without it.
            return system.status(Self.markerName, in: corner)?.isExecutable == true ? .alwaysSet : .stored
        }
        guard let probe = try? newPart() else { return .stored }
        defer { removePart(probe.name) }
        guard let plain = system.status(probe.file) else { return .stored }
        if plain.isExecutable { return .alwaysSet }
        guard system.set(probe.file, modified: nil, mode: 0o700) else { return .neverSet }
        return system.status(probe.file)?.isExecutable == false ? .neverSet : .stored
    }()

    /// True when the file system stores the executable bit.
    var keepsExecutableBit: Bool { executableBits == .stored }

    /// Returns the path's name in the form that the file system compares.
    func key(_ path: FolderPath) -> [UInt8] { Array(folds ? path.text.lowercased().utf8 : path.text.utf8) }

    func keep(_ folders: some Sequence<FolderPath>) { kept = Set(folders.map(key)) }

    func isKept(_ folder: FolderPath) -> Bool { kept.contains(key(folder)) }

    // MARK: Examining

    /// Examines everything. A cancelled task examines only the beginning, and the result is incomplete.
    func walk(into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        walk(root, "", timespecNow(), &scan, &report)
        // After an interruption the next round reuses these results.
        hashes = Task.isCancelled ? hashes.merging(scan.hashes) { $1 } : scan.hashes
        return scan
    }

    func timespecNow() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now.nanoseconds
    }

    private func walk(
        _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan, _ report: inout FolderReport
    ) {
        guard let names = system.names(in: folder) else {
            report.warn(.unreadable, prefix)
            return scan.block(Array(prefix.utf8.dropLast()))
        }
        let place = Self.names(of: prefix)
        _ = rules.state(in: place, (folder, names))
        if let path = FolderPath(folderTitle: prefix) {
            scan.folders.insert(path)
            if names.isEmpty { noteEmpty(path, &scan) }
        }
        for bytes in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            if Task.isCancelled { return scan.isComplete = false }
            if prefix.isEmpty, bytes == Array(FolderPath.corner.utf8) { continue }
            if isLeftOut(bytes, in: place) { continue }
            visit(bytes, folder, prefix, now, &scan, &report)
        }
    }

    /// Examines one entry of a folder, and its content.
    func visit(
        _ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan,
        _ report: inout FolderReport
    ) {
        let place = Array(prefix.utf8) + bytes
        if isIgnored(bytes, folder, prefix, &scan) { return }
        guard let (name, path) = usable(bytes, folder, prefix, &report) else {
            // A missing file may have this name now.
            return scan.block(place)
        }
        guard let entry = system.entry(name, in: folder) else {
            report.warn(.unreadable, path.text)
            scan.skipped.insert(path)
            return scan.block(place)
        }
        // Removed since the folder was listed.
        guard case .something(let status) = entry else { return }
        if status.isFolder {
            guard let inner = system.openFolder(name, in: folder), status.st_dev == device else {
                report.warn(.unreadable, path.text)
                return scan.block(place)
            }
            if Self.marker(in: inner, system) != nil {
                report.warn(.nestedFolder, path.text)
                scan.skipped.insert(path)
                return scan.block(place)
            }
            walk(inner, path.text + "/", now, &scan, &report)
        } else if status.isFile {
            if let hash = hash(name, folder, path, status.signature, now, &scan.hashes) {
                scan.files[path] = FileContent(
                    digest: hash, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
            } else {
                report.warn(.unreadable, path.text)
                scan.skipped.insert(path)
                scan.block(place)
            }
        } else {
            report.warn(status.st_mode & S_IFMT == S_IFLNK ? .link : .specialFile, path.text)
            scan.skipped.insert(path)
        }
    }

    /// Returns the name in the form that is valid on all devices. A file whose name has another form is renamed.
    private func usable(
        _ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ report: inout FolderReport
    ) -> (String, FolderPath)? {
        guard let text = String(validating: bytes, as: UTF8.self), var path = try? FolderPath(prefix + text) else {
            report.warn(.unusableName, prefix + VisibleName.text(bytes))
            return nil
        }
        if Array(path.names[path.names.count - 1].utf8) == bytes { return (path.names[path.names.count - 1], path) }
        // A plan reads the file under its present name.
        if isReading { return (text, path) }
        for number in 1..<100 {
            if number > 1 { path = path.suffixed(String(number)) }
            let name = path.names[path.names.count - 1]
            if system.rename(bytes: bytes, in: folder, to: name) { return (name, path) }
        }
        report.warn(.unusableName, path.text)
        return nil
    }

    private func hash(
        _ name: String, _ folder: Descriptor, _ path: FolderPath, _ signature: FileSignature, _ now: Int64,
        _ kept: inout [FolderPath: KnownHash]
    ) -> [UInt8]? {
        if let known = hashes[path], known.signature == signature {
            kept[path] = known
            return known.digest
        }
        guard let file = system.openFile(name, in: folder) else { return nil }
        let read = digest(of: file) { count in
            readCount += count
            onRead(readCount)
            return !Task.isCancelled
        }
        guard let digest = read else { return nil }
        // A very recent file could be written again without a visible change.
        if !isYoung(signature, at: now) { kept[path] = KnownHash(signature: signature, digest: digest) }
        return digest
    }

    /// Returns the digest of a file.
    /// - Parameter goesOn: Receives the length of each piece. With false, nil is returned.
    func digest(of file: Descriptor, while goesOn: (Int) -> Bool = { _ in true }) -> [UInt8]? {
        var hash = SHA256.Incremental()
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: Int64 = 0
        while true {
            guard let count = buffer.withUnsafeMutableBytes({ system.read(file, at: offset, into: $0) }) else {
                return nil
            }
            hash.update(count == buffer.count ? buffer : Array(buffer.prefix(count)))
            offset += Int64(count)
            guard goesOn(count) else { return nil }
            if count < buffer.count { return hash.finalize().bytes }
        }
    }

    // MARK: Reading

    /// Returns the source of a file, and the time of its last change.
    func source(_ path: FolderPath) -> (source: AttachmentSource, modified: Int64)? {
        guard let (folder, name) = place(path), let file = system.openFile(name, in: folder),
            let status = system.status(file), status.isFile
        else { return nil }
        let source = AttachmentSource(byteCount: Int64(status.st_size)) { [system] offset, count in
            try SecureBytes(count: count) { buffer throws(FolderError) in
                guard system.read(file, at: offset, into: buffer) == count else { throw .unusable }
            }
        }
        return (source, status.signature.modified)
    }

    /// Returns the folder of a path, and its name there.
    /// - Parameter isMade: True to create missing folders.
    func place(_ path: FolderPath, isMade: Bool = false) -> (Descriptor, String)? {
        var folder = root
        for name in path.names.dropLast() {
            if isMade, !system.makeFolder(name, in: folder) { return nil }
            guard let inner = system.openFolder(name, in: folder),
                system.status(inner)?.st_dev == device, Self.marker(in: inner, system) == nil
            else { return nil }
            folder = inner
        }
        return (folder, path.names[path.names.count - 1])
    }
}
