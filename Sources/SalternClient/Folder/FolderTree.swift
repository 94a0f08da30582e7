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
    }

    private let system: any FolderSystem
    let root: Descriptor
    private let device: dev_t
    private let corner: Descriptor
    private let parts: Descriptor
    private let trash: Descriptor
    /// What was read of a file when it was this one.
    var hashes: [FolderPath: KnownHash] = [:]

    struct KnownHash: Hashable {
        var signature: FileSignature
        var digest: [UInt8]
    }

    private static let markerName = "folder"
    /// The disk's clock may be as coarse as this.
    private static let youth: Int64 = 2_000_000_000

    init(_ path: String, _ system: any FolderSystem = DiskFolders()) throws(FolderError) {
        guard let root = system.openRoot(path), let status = system.status(root),
            let corner = Self.folder(FolderPath.corner, in: root, system),
            let parts = Self.folder("parts", in: corner, system), let trash = Self.folder("trash", in: corner, system)
        else { throw .unusable }
        self.system = system
        self.root = root
        device = status.st_dev
        self.corner = corner
        self.parts = parts
        self.trash = trash
        tidy()
    }

    private static func folder(_ name: String, in folder: Descriptor, _ system: any FolderSystem) -> Descriptor? {
        guard system.makeFolder(name, in: folder) else { return nil }
        return system.openFolder(name, in: folder)
    }

    // MARK: Marker

    /// By which the folder is known again.
    func marker() -> ItemID? {
        guard let file = system.openFile(Self.markerName, in: corner) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 36)
        let count = bytes.withUnsafeMutableBytes { system.read(file, at: 0, into: $0) }
        return count == 36 ? ItemID(String(decoding: bytes, as: UTF8.self)) : nil
    }

    func setMarker(_ id: ItemID) throws(FolderError) {
        system.removeFile(Self.markerName, in: corner)
        guard let file = system.createFile(Self.markerName, in: corner),
            Array(id.description.utf8).withUnsafeBytes({ system.write($0, to: file) }), system.sync(file)
        else { throw .unusable }
    }

    /// Whether the file system takes "a" and "A" for one name.
    private(set) lazy var folds = system.status(FolderPath.corner.uppercased(), in: root) != nil

    // MARK: Walking

    func walk(into report: inout FolderReport) -> Scan {
        var scan = Scan()
        let now = timespecNow()
        var kept: [FolderPath: KnownHash] = [:]
        walk(root, "", now, &scan, &kept, &report)
        hashes = kept
        return scan
    }

    private func timespecNow() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now.nanoseconds
    }

    private func walk(
        _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan, _ kept: inout [FolderPath: KnownHash],
        _ report: inout FolderReport
    ) {
        guard let names = system.names(in: folder) else {
            report.warn(.unreadable, prefix)
            return scan.isComplete = false
        }
        for bytes in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            guard let (name, path) = usable(bytes, folder, prefix, &report) else { continue }
            guard let status = system.status(name, in: folder) else { continue }
            if status.isFolder {
                if let inner = system.openFolder(name, in: folder), status.st_dev == device {
                    walk(inner, path.text + "/", now, &scan, &kept, &report)
                } else {
                    report.warn(.unreadable, path.text)
                    scan.isComplete = false
                }
            } else if status.isFile {
                if let hash = hash(name, folder, path, status.signature, now, &kept) {
                    scan.files[path] = FileContent(
                        digest: hash, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
                } else {
                    report.warn(.unreadable, path.text)
                    scan.skipped.insert(path)
                    scan.isComplete = false
                }
            } else {
                report.warn(status.st_mode & S_IFMT == S_IFLNK ? .link : .specialFile, path.text)
                scan.skipped.insert(path)
            }
        }
    }

    /// The name as everybody can have it. A file whose name is in another form gets this one.
    private func usable(
        _ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ report: inout FolderReport
    ) -> (String, FolderPath)? {
        if prefix.isEmpty, bytes == Array(FolderPath.corner.utf8) { return nil }
        guard let text = String(validating: bytes, as: UTF8.self), var path = try? FolderPath(prefix + text) else {
            report.warn(.unusableName, prefix + String(decoding: bytes, as: UTF8.self))
            return nil
        }
        if Array(path.names[path.names.count - 1].utf8) == bytes { return (path.names[path.names.count - 1], path) }
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
        guard let file = system.openFile(name, in: folder), let digest = digest(of: file) else { return nil }
        // What is as young as this look at it may be written again without a trace.
        if max(signature.modified, signature.changed) < now - Self.youth {
            kept[path] = KnownHash(signature: signature, digest: digest)
        }
        return digest
    }

    func digest(of file: Descriptor) -> [UInt8]? {
        var hash = SHA256.Incremental()
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: Int64 = 0
        while true {
            guard let count = buffer.withUnsafeMutableBytes({ system.read(file, at: offset, into: $0) }) else {
                return nil
            }
            hash.update(count == buffer.count ? buffer : Array(buffer.prefix(count)))
            offset += Int64(count)
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
    private func place(_ path: FolderPath, isMade: Bool = false) -> (Descriptor, String)? {
        var folder = root
        for name in path.names.dropLast() {
            if isMade, !system.makeFolder(name, in: folder) { return nil }
            guard let inner = system.openFolder(name, in: folder),
                system.status(inner)?.st_dev == device
            else { return nil }
            folder = inner
        }
        return (folder, path.names[path.names.count - 1])
    }

    // MARK: Writing

    /// A file that is being fetched.
    func newPart() throws(FolderError) -> (name: String, file: Descriptor) {
        let name = "part-\(ItemID.random())"
        guard let file = system.createFile(name, in: parts) else { throw .unusable }
        return (name, file)
    }

    func removePart(_ name: String) { system.removeFile(name, in: parts) }

    /// Puts a whole file in its place.
    /// - Parameters:
    ///   - over: What is expected there; when it is something else that becomes a conflict copy at `aside`.
    /// - Returns: false when nothing was changed.
    func place(
        _ part: (name: String, file: Descriptor), at path: FolderPath, over: FileContent?, isExecutable: Bool,
        modified: Int64?, aside: FolderPath
    ) -> Bool {
        guard let (folder, name) = place(path, isMade: true) else { return false }
        let old = system.status(name, in: folder)
        let readers: mode_t = old.map { $0.st_mode & 0o666 } ?? 0o600
        let mode = readers | (isExecutable ? 0o100 | ((readers & 0o044) >> 2) : 0)
        guard system.set(part.file, modified: modified.map(timespec.init(nanoseconds:)), mode: mode),
            system.sync(part.file)
        else { return false }
        guard let over else {
            // An empty folder is nobody's.
            if old?.isFolder == true { removeEmptyFolders(in: path) }
            let isPlaced = system.rename(part.name, in: parts, to: name, in: folder)
            return isPlaced && system.sync(folder)
        }
        // From here on the name may be that of what was displaced: who tidies up keeps it.
        let swap = "swap-\(ItemID.random())"
        guard system.rename(part.name, in: parts, to: swap, in: parts),
            system.exchange(swap, in: parts, with: name, in: folder)
        else {
            system.removeFile(swap, in: parts)
            return false
        }
        _ = system.sync(folder)
        if content(swap, in: parts)?.digest == over.digest {
            system.removeFile(swap, in: parts)
        } else {
            keep(swap, aside)
        }
        return true
    }

    private func content(_ name: String, in folder: Descriptor) -> FileContent? {
        guard let file = system.openFile(name, in: folder), let status = system.status(file), status.isFile,
            let digest = digest(of: file)
        else { return nil }
        return FileContent(digest: digest, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
    }

    /// What was displaced and is not what was expected becomes a file of its own.
    private func keep(_ name: String, _ aside: FolderPath) {
        guard let (folder, newName) = place(aside, isMade: true),
            system.rename(name, in: parts, to: newName, in: folder)
        else {
            _ = system.rename(name, in: parts, to: Self.trashName(aside), in: trash)
            return
        }
    }

    func move(_ from: FolderPath, to: FolderPath) -> Bool {
        let (oldKey, newKey) = (key(from), key(to))
        if oldKey == newKey || to.folders.contains(where: { key($0) == oldKey })
            || from.folders.contains(where: { key($0) == newKey })
        {
            return moveThroughParts(from, to)
        }
        guard let (old, name) = place(from), let (new, newName) = place(to, isMade: true) else { return false }
        if system.status(newName, in: new)?.isFolder == true { removeEmptyFolders(in: to) }
        guard system.rename(name, in: old, to: newName, in: new) else { return false }
        _ = system.sync(new)
        removeEmptyFolders(above: from)
        return true
    }

    private func key(_ path: FolderPath) -> String { folds ? path.text.lowercased() : path.text }

    /// Moves a file to where one of its own folders is, beneath its own name, or to another spelling of its name.
    private func moveThroughParts(_ from: FolderPath, _ to: FolderPath) -> Bool {
        let id = ItemID.random().description
        defer { system.removeFile(Self.placesPrefix + id, in: parts) }
        guard notePlaces([to, from], id), let (old, name) = place(from),
            system.rename(name, in: old, to: Self.movePrefix + id, in: parts)
        else { return false }
        removeEmptyFolders(above: from)
        return endMove(id, [to, from]) == to
    }

    private static let movePrefix = "move-"
    private static let placesPrefix = "places-"

    /// Where a file goes that has no place for a moment: for who is killed then, and starts again.
    private func notePlaces(_ places: [FolderPath], _ id: String) -> Bool {
        guard let file = system.createFile(Self.placesPrefix + id, in: parts) else { return false }
        let text = places.map(\.text).joined(separator: "\0")
        return Array(text.utf8).withUnsafeBytes { system.write($0, to: file) } && system.sync(file)
    }

    private func places(_ id: String) -> [FolderPath] {
        guard let file = system.openFile(Self.placesPrefix + id, in: parts) else { return [] }
        var bytes = [UInt8](repeating: 0, count: 1 << 14)
        let count = bytes.withUnsafeMutableBytes { system.read(file, at: 0, into: $0) } ?? 0
        return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\0").compactMap {
            try? FolderPath($0)
        }
    }

    /// Puts it where there is room, the first place first, else in the trash.
    private func endMove(_ id: String, _ places: [FolderPath]) -> FolderPath? {
        let name = Self.movePrefix + id
        for path in places {
            guard let (folder, newName) = place(path, isMade: true),
                system.rename(name, in: parts, to: newName, in: folder)
            else { continue }
            _ = system.sync(folder)
            return path
        }
        let last = places.last ?? (try? FolderPath(name))
        if let last { _ = system.rename(name, in: parts, to: Self.trashName(last), in: trash) }
        return nil
    }

    /// Puts a file in the trash, unless it is not what is expected.
    func discard(_ path: FolderPath, _ expected: FileContent) -> Bool {
        guard let (folder, name) = place(path) else { return false }
        let trashed = Self.trashName(path)
        guard system.rename(name, in: folder, to: trashed, in: trash) else { return false }
        guard content(trashed, in: trash)?.digest == expected.digest else {
            _ = system.rename(trashed, in: trash, to: name, in: folder)
            return false
        }
        _ = system.sync(trash)
        removeEmptyFolders(above: path)
        return true
    }

    // MARK: Order

    private func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard let (outer, name) = place(folder), system.removeFolder(name, in: outer) else { return }
        }
    }

    /// Removes folders in which there are only folders.
    private func removeEmptyFolders(in path: FolderPath) {
        guard let (outer, name) = place(path), let folder = system.openFolder(name, in: outer) else { return }
        for inner in system.names(in: folder) ?? [] {
            guard let text = String(validating: inner, as: UTF8.self),
                let path = try? FolderPath(path.text + "/" + text)
            else { continue }
            if system.status(text, in: folder)?.isFolder == true { removeEmptyFolders(in: path) }
        }
        _ = system.removeFolder(name, in: outer)
    }

    private static let trashDays = 30

    private static func trashName(_ path: FolderPath) -> String {
        let day = Int(Date().timeIntervalSince1970) / 86_400
        return "\(day)-\(ItemID.random())-\(String(path.names[path.names.count - 1].prefix(48)))"
    }

    /// What a process that was killed has left: a file that was on its way arrives, half a file is nothing, what was
    /// displaced is kept in the trash.
    private func tidy() {
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) })
        where name.hasPrefix(Self.movePrefix) {
            let id = String(name.dropFirst(Self.movePrefix.count))
            _ = endMove(id, places(id))
        }
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            if name.hasPrefix("swap-"), let path = try? FolderPath(name) {
                _ = system.rename(name, in: parts, to: Self.trashName(path), in: trash)
            } else {
                system.removeFile(name, in: parts)
            }
        }
        let today = Int(Date().timeIntervalSince1970) / 86_400
        for name in (system.names(in: trash) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            guard let day = name.split(separator: "-").first.flatMap({ Int($0) }), day + Self.trashDays < today else {
                continue
            }
            system.removeFile(name, in: trash)
        }
    }
}
