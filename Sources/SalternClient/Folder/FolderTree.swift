internal import Foundation

/// A folder on the disk. It opens the root and the private folder `.saltern`, and examines the entries.
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

    struct KnownHash: Hashable {
        var signature: FileSignature
        var digest: [UInt8]
    }

    private let system: any FolderSystem
    /// The root itself.
    private let top: Descriptor
    private let device: dev_t
    /// True when nothing may be changed.
    private let isReading: Bool
    /// The entries by their paths.
    let root: FolderRoot
    let marker: FolderMarkerFile
    let parts: FolderParts
    let trash: FolderTrash
    let rules: FolderRules
    /// The stored digest of each file, for unchanged files.
    var hashes: [FolderPath: KnownHash] = [:]
    /// Receives the number of bytes that examinations have read, after each piece.
    var onRead: (Int) -> Void = { _ in }
    private var readCount = 0

    private init(
        _ system: any FolderSystem, _ top: Descriptor, _ device: dev_t, corner: Descriptor, parts: Descriptor,
        trash: Descriptor, isReading: Bool
    ) {
        self.system = system
        self.top = top
        self.device = device
        self.isReading = isReading
        root = FolderRoot(system, top, device, corner: corner)
        marker = FolderMarkerFile(system, top, corner: corner)
        self.trash = FolderTrash(system, root, trash)
        self.parts = FolderParts(system, root, parts, self.trash)
        rules = FolderRules(system, top, device)
    }

    convenience init(_ path: String, _ system: any FolderSystem = DiskFolders()) throws(FolderError) {
        guard let top = system.openRoot(path), let status = system.status(top),
            let corner = Self.folder(FolderPath.corner, in: top, system),
            let parts = Self.folder(FolderParts.folder, in: corner, system),
            let trash = Self.folder(FolderTrash.folder, in: corner, system)
        else { throw .unusable }
        self.init(system, top, status.st_dev, corner: corner, parts: parts, trash: trash, isReading: false)
    }

    /// Opens a folder for a plan: nothing is created in it. Only functions that read may be called.
    convenience init(reading path: String, _ system: any FolderSystem) throws(FolderError) {
        guard let top = system.openRoot(path), let status = system.status(top) else { throw .unusable }
        // A folder that was never synced has none of these. The root in their place is not used.
        let corner = system.openFolder(FolderPath.corner, in: top) ?? top
        let parts = system.openFolder(FolderParts.folder, in: corner) ?? top
        let trash = system.openFolder(FolderTrash.folder, in: corner) ?? top
        self.init(system, top, status.st_dev, corner: corner, parts: parts, trash: trash, isReading: true)
    }

    private static func folder(_ name: String, in folder: Descriptor, _ system: any FolderSystem) -> Descriptor? {
        guard system.makeFolder(name, in: folder) else { return nil }
        return system.openFolder(name, in: folder)
    }

    // MARK: Executable bits

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
            return marker.isExecutable ? .alwaysSet : .stored
        }
        guard let probe = try? parts.newPart() else { return .stored }
        defer { parts.removePart(probe.name) }
        guard let plain = system.status(probe.file) else { return .stored }
        if plain.isExecutable { return .alwaysSet }
        guard system.set(probe.file, modified: nil, mode: 0o700) else { return .neverSet }
        return system.status(probe.file)?.isExecutable == false ? .neverSet : .stored
    }()

    /// True when the file system stores the executable bit.
    var keepsExecutableBit: Bool { executableBits == .stored }

    /// Sets or removes the executable bit of a file. A file of another user is not changed, and neither is one on a
    /// file system that does not store the bit.
    /// - Returns: False when there is no such file.
    func setExecutable(_ path: FolderPath, _ isExecutable: Bool) -> Bool {
        guard let (folder, name) = root.place(path), let file = system.openFile(name, in: folder),
            let status = system.status(file), status.isFile
        else { return false }
        if keepsExecutableBit, status.isExecutable != isExecutable {
            _ = system.set(file, modified: nil, mode: FolderParts.mode(status.st_mode, isExecutable: isExecutable))
        }
        return true
    }

    /// Gives a file the executable bit, or removes it, without another change.
    /// - Returns: False when there is no such file, or when the bit cannot be changed, as that of another user's file.
    func changeExecutable(_ path: FolderPath, _ isExecutable: Bool) -> Bool {
        guard setExecutable(path, isExecutable), let (folder, name) = root.place(path) else { return false }
        return !keepsExecutableBit || system.status(name, in: folder)?.isExecutable == isExecutable
    }

    // MARK: Examining

    /// Examines everything. A cancelled task examines only the beginning, and the result is incomplete.
    func walk(into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        walk(top, "", FileSignature.now(), &scan, &report)
        // After an interruption the next round reuses these results.
        hashes = Task.isCancelled ? hashes.merging(scan.hashes) { $1 } : scan.hashes
        return scan
    }

    /// Examines only some entries. One that no longer exists is in no set of the result.
    /// - Parameter entries: The bytes of their paths on the disk.
    func examine(_ entries: Set<[UInt8]>, into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        let now = FileSignature.now()
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
        var folder = top
        var prefix = ""
        for bytes in names.dropLast() {
            // If a folder on the path cannot be passed, the whole folder is examined.
            guard let name = String(validating: bytes, as: UTF8.self), let path = try? FolderPath(prefix + name),
                Array(path.text.utf8) == Array(prefix.utf8) + bytes,
                let inner = system.openFolder(name, in: folder), system.status(inner)?.st_dev == device,
                FolderMarkerFile.marker(in: inner, system) == nil
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
    private func visit(
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
            if FolderMarkerFile.marker(in: inner, system) != nil {
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
        let read = system.digest(of: file) { count in
            readCount += count
            onRead(readCount)
            return !Task.isCancelled
        }
        guard let digest = read else { return nil }
        // A very recent file could be written again without a visible change.
        if !signature.isYoung(at: now) { kept[path] = KnownHash(signature: signature, digest: digest) }
        return digest
    }

    // MARK: Ignored entries

    /// The names in the path of a folder.
    /// - Parameter prefix: The path with a slash at the end; empty for the root.
    private static func names(of prefix: String) -> ArraySlice<String> {
        prefix.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }[...]
    }

    /// Returns true when an entry is ignored, and records it. Its name may be one that cannot be synced.
    private func isIgnored(_ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ scan: inout Scan) -> Bool {
        let outer = Self.names(of: prefix)
        guard case .active(let scope) = rules.state(in: outer), !scope.isEmpty else { return false }
        let text = String(validating: bytes, as: UTF8.self)
        let name = text.map { Array($0.precomposedStringWithCanonicalMapping.utf8) } ?? bytes
        // An entry with a name that is not UTF-8 counts as a file.
        let isFolder = text.map { system.status($0, in: folder)?.isFolder == true } ?? false
        guard scope.ignores(outer.map { Array($0.utf8) } + [name], isFolder: isFolder) else { return false }
        scan.ignored.insert(Array((prefix + VisibleName.text(name) + (isFolder ? "/" : "")).utf8))
        if let text, let path = try? FolderPath(prefix + text) { scan.skipped.insert(path) }
        return true
    }

    /// Records an empty folder. Patterns that exclude everything in it exclude the folder, too.
    private func noteEmpty(_ path: FolderPath, _ scan: inout Scan) {
        if rules.fate(ofFolder: path) == .ignored {
            scan.ignored.insert(Array(path.folderTitle.utf8))
        } else {
            scan.emptyFolders.insert(path)
        }
    }

    /// Returns true when nothing in the entry's folder is examined, because it is ignored or an ignore file cannot be
    /// applied.
    private func isLeftOut(_ name: [UInt8], in folder: ArraySlice<String>) -> Bool {
        switch rules.state(in: folder) {
        case .active: false
        case .ignored: true
        case .broken(let depth):
            depth != folder.count || !IgnoreFile.isName(String(decoding: name, as: UTF8.self))
        }
    }
}
