internal import Cryptography
internal import Foundation

/// A folder on the disk: everything is reached from its root, without following links.
final class FolderTree {
    /// What a walk has found.
    struct Scan {
        var files: [FolderPath: FileContent] = [:]
        /// Names that are there and are no files of ours.
        var skipped: Set<FolderPath> = []
        var isComplete = true
        /// The entries because of which it is not complete: their paths on the disk.
        var obstacles: Set<[UInt8]> = []
        /// Files whose content was read recently enough to be known, with what was read.
        var hashes: [FolderPath: KnownHash] = [:]
        /// Entries that are ignored: the bytes of their paths, those of folders with a slash at the end. What is in those is not
        /// listed.
        var ignored: Set<[UInt8]> = []
        /// Folders that are there, and those of them in which nothing is.
        var folders: Set<FolderPath> = []
        var emptyFolders: Set<FolderPath> = []
        /// Folders that a round with a focus has listed only to find out whether they are empty.
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
    /// Folders that items stand for, by their names as the file system compares them: they stay when they become empty.
    private var kept: Set<[UInt8]> = []
    /// True when nothing may be changed.
    private(set) var isReading = false
    /// The rules of the ignore files.
    let rules: FolderRules
    /// What was read of a file when it was this one.
    var hashes: [FolderPath: KnownHash] = [:]
    /// Is told how many bytes walks have read, after each piece.
    var onRead: (Int) -> Void = { _ in }
    private var readCount = 0
    /// The names in `parts` of downloads that were cut off since this tree was opened.
    var unfinishedFetches: Set<String> = []

    struct KnownHash: Hashable {
        var signature: FileSignature
        var digest: [UInt8]
    }

    static let trashFolder = "trash"
    private static let partsFolder = "parts"
    private static let markerName = "folder"
    static let markerPath = FolderPath.corner + "/" + markerName
    /// The disk's clock may be as coarse as this.
    private static let youth: Int64 = 2_000_000_000
    /// The clock of a network's disk may be ahead by this.
    private static let clockDifference: Int64 = 3_600_000_000_000

    /// Returns whether a file may be written again without a trace in what the kernel reports of it. Any program can set the
    /// time of the last write, also to a future one; every write also sets the other time to the present.
    ///
    /// A last change in the far future was made by a wrong clock, which any later change replaces. A server's clock may be
    /// ahead by less than that.
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
        tidy()
    }

    /// For a plan: nothing is made in the folder. Only what reads may be called.
    init(reading path: String, _ system: any FolderSystem) throws(FolderError) {
        guard let root = system.openRoot(path), let status = system.status(root) else { throw .unusable }
        self.system = system
        self.root = root
        device = status.st_dev
        // A folder that was never in sync has none of these; nothing is looked up in the root in their place.
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

    /// By which the folder is known again.
    func marker() -> FolderMarker? { Self.readMarker(in: corner, system) }

    /// That of a folder in which nothing is made.
    static func marker(in root: Descriptor, _ system: any FolderSystem) -> FolderMarker? {
        system.openFolder(FolderPath.corner, in: root).flatMap { readMarker(in: $0, system) }
    }

    private static func readMarker(in corner: Descriptor, _ system: any FolderSystem) -> FolderMarker? {
        guard let file = system.openFile(markerName, in: corner) else { return nil }
        var bytes = [UInt8](repeating: 0, count: FolderMarker.byteLimit)
        let count = bytes.withUnsafeMutableBytes { system.read(file, at: 0, into: $0) }
        return count.flatMap { FolderMarker(bytes.prefix($0)) }
    }

    /// Puts a marker in the place of the one that is there: at no moment there is none, but on file systems that can neither
    /// exchange nor replace.
    /// - Returns: Whether it is on the disk.
    func setMarker(_ marker: FolderMarker) -> Bool {
        let part = "marker-\(ItemID.random())"
        guard let file = system.createFile(part, in: parts) else { return false }
        defer { system.removeFile(part, in: parts) }
        guard write(marker, to: file) else { return false }
        let isThere =
            system.exchange(part, in: parts, with: Self.markerName, in: corner)
            || system.rename(part, in: parts, to: Self.markerName, in: corner) || makeMarker(marker)
        return isThere && system.sync(corner)
    }

    /// Writes the first marker of a folder. Of several processes that do so at once one succeeds.
    /// - Returns: False when there is a marker, or none can be written.
    func claim(_ marker: FolderMarker) -> Bool {
        // Not in `parts`, which another process tidies up when it begins.
        let name = "claim-\(ItemID.random())"
        guard let file = system.createFile(name, in: corner) else { return false }
        guard write(marker, to: file), system.rename(name, in: corner, to: Self.markerName, in: corner) else {
            system.removeFile(name, in: corner)
            return false
        }
        return system.sync(corner)
    }

    /// Whoever is killed within it has a folder without a marker, in which nothing is done until somebody looks.
    private func makeMarker(_ marker: FolderMarker) -> Bool {
        system.removeFile(Self.markerName, in: corner)
        return system.createFile(Self.markerName, in: corner).map { write(marker, to: $0) } ?? false
    }

    private func write(_ marker: FolderMarker, to file: Descriptor) -> Bool {
        Array(marker.text.utf8).withUnsafeBytes { system.write($0, to: file) } && system.sync(file)
    }

    /// Whether the file system takes "a" and "A" for one name.
    private(set) lazy var folds: Bool = {
        if corner === root { return false }
        // A folder of that name may be there all the same: another one.
        guard let other = system.status(FolderPath.corner.uppercased(), in: root),
            let own = system.status(corner)
        else { return false }
        return (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino)
    }()

    /// Whether the file system keeps the executable bit. On some mounts every file has it, on others none.
    private(set) lazy var keepsExecutableBit: Bool = {
        if isReading {
            // The marker is made without it.
            return system.status(Self.markerName, in: corner)?.isExecutable != true
        }
        guard let probe = try? newPart() else { return true }
        defer { removePart(probe.name) }
        guard let plain = system.status(probe.file) else { return true }
        if plain.isExecutable { return false }
        guard system.set(probe.file, modified: nil, mode: 0o700) else { return false }
        return system.status(probe.file)?.isExecutable ?? true
    }()

    /// The name of a path as the file system compares it.
    func key(_ path: FolderPath) -> [UInt8] { Array(folds ? path.text.lowercased().utf8 : path.text.utf8) }

    func keep(_ folders: some Sequence<FolderPath>) { kept = Set(folders.map(key)) }

    func isKept(_ folder: FolderPath) -> Bool { kept.contains(key(folder)) }

    // MARK: Walking

    /// Examines everything; a task that is cancelled sees only the beginning, which is not complete.
    func walk(into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        walk(root, "", timespecNow(), &scan, &report)
        // Who was interrupted goes on with what was read.
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

    /// Examines one entry of a folder, and all that is in it.
    func visit(
        _ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan,
        _ report: inout FolderReport
    ) {
        let place = Array(prefix.utf8) + bytes
        if isIgnored(bytes, folder, prefix, &scan) { return }
        guard let (name, path) = usable(bytes, folder, prefix, &report) else {
            // What is missing may be there under this name.
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

    /// The name as everybody can have it. A file whose name is in another form gets this one.
    private func usable(
        _ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ report: inout FolderReport
    ) -> (String, FolderPath)? {
        guard let text = String(validating: bytes, as: UTF8.self), var path = try? FolderPath(prefix + text) else {
            report.warn(.unusableName, prefix + VisibleName.text(bytes))
            return nil
        }
        if Array(path.names[path.names.count - 1].utf8) == bytes { return (path.names[path.names.count - 1], path) }
        // A plan reads the file under the name that it has.
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
        // What is as young as this look at it may be written again without a trace.
        if !isYoung(signature, at: now) { kept[path] = KnownHash(signature: signature, digest: digest) }
        return digest
    }

    /// - Parameter goesOn: Is told the length of each piece; nil is returned when it says no.
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

    /// A file for sending, with when it was changed.
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

    /// The folder that a path is in, and its name there.
    /// - Parameter isMade: Whether folders that are missing are made.
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
