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

    init(_ path: String) throws(FolderError) {
        guard let root = FolderSystem.openRoot(path), let status = FolderSystem.status(root),
            let corner = Self.folder(FolderPath.corner, in: root), let parts = Self.folder("parts", in: corner),
            let trash = Self.folder("trash", in: corner)
        else { throw .unusable }
        self.root = root
        device = status.st_dev
        self.corner = corner
        self.parts = parts
        self.trash = trash
        tidy()
    }

    private static func folder(_ name: String, in folder: Descriptor) -> Descriptor? {
        guard FolderSystem.makeFolder(name, in: folder) else { return nil }
        return FolderSystem.openFolder(name, in: folder)
    }

    // MARK: Marker

    /// By which the folder is known again.
    func marker() -> ItemID? {
        guard let file = FolderSystem.openFile(Self.markerName, in: corner) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 36)
        let count = bytes.withUnsafeMutableBytes { FolderSystem.read(file, at: 0, into: $0) }
        return count == 36 ? ItemID(String(decoding: bytes, as: UTF8.self)) : nil
    }

    func setMarker(_ id: ItemID) throws(FolderError) {
        FolderSystem.removeFile(Self.markerName, in: corner)
        guard let file = FolderSystem.createFile(Self.markerName, in: corner),
            Array(id.description.utf8).withUnsafeBytes({ FolderSystem.write($0, to: file) }), FolderSystem.sync(file)
        else { throw .unusable }
    }

    /// Whether the file system takes "a" and "A" for one name.
    func foldsCase() -> Bool { FolderSystem.status(FolderPath.corner.uppercased(), in: root) != nil }

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
        guard let names = FolderSystem.names(in: folder) else {
            report.warn(.unreadable, prefix)
            return scan.isComplete = false
        }
        for bytes in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            guard let (name, path) = usable(bytes, folder, prefix, &report) else { continue }
            guard let status = FolderSystem.status(name, in: folder) else { continue }
            if status.isFolder {
                if let inner = FolderSystem.openFolder(name, in: folder), status.st_dev == device {
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
            if FolderSystem.rename(bytes: bytes, in: folder, to: name) { return (name, path) }
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
        guard let file = FolderSystem.openFile(name, in: folder), let digest = Self.digest(of: file) else { return nil }
        // What is as young as this look at it may be written again without a trace.
        if max(signature.modified, signature.changed) < now - Self.youth {
            kept[path] = KnownHash(signature: signature, digest: digest)
        }
        return digest
    }

    static func digest(of file: Descriptor) -> [UInt8]? {
        var hash = SHA256.Incremental()
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: Int64 = 0
        while true {
            guard let count = buffer.withUnsafeMutableBytes({ FolderSystem.read(file, at: offset, into: $0) }) else {
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
        guard let (folder, name) = place(path), let file = FolderSystem.openFile(name, in: folder),
            let status = FolderSystem.status(file), status.isFile
        else { return nil }
        let source = AttachmentSource(byteCount: Int64(status.st_size)) { offset, count in
            try SecureBytes(count: count) { buffer throws(FolderError) in
                guard FolderSystem.read(file, at: offset, into: buffer) == count else { throw .unusable }
            }
        }
        return (source, status.signature.modified)
    }

    /// The folder that a path is in, and its name there.
    /// - Parameter isMade: Whether folders that are missing are made.
    private func place(_ path: FolderPath, isMade: Bool = false) -> (Descriptor, String)? {
        var folder = root
        for name in path.names.dropLast() {
            if isMade, !FolderSystem.makeFolder(name, in: folder) { return nil }
            guard let inner = FolderSystem.openFolder(name, in: folder),
                FolderSystem.status(inner)?.st_dev == device
            else { return nil }
            folder = inner
        }
        return (folder, path.names[path.names.count - 1])
    }

    // MARK: Writing

    /// A file that is being fetched.
    func newPart() throws(FolderError) -> (name: String, file: Descriptor) {
        let name = "part-\(ItemID.random())"
        guard let file = FolderSystem.createFile(name, in: parts) else { throw .unusable }
        return (name, file)
    }

    func removePart(_ name: String) { FolderSystem.removeFile(name, in: parts) }

    /// Puts a whole file in its place.
    /// - Parameters:
    ///   - over: What is expected there; when it is something else that becomes a conflict copy at `aside`.
    /// - Returns: false when nothing was changed.
    func place(
        _ part: (name: String, file: Descriptor), at path: FolderPath, over: FileContent?, isExecutable: Bool,
        modified: Int64?, aside: FolderPath
    ) -> Bool {
        guard let (folder, name) = place(path, isMade: true) else { return false }
        let old = FolderSystem.status(name, in: folder)
        let readers: mode_t = old.map { $0.st_mode & 0o666 } ?? 0o600
        let mode = readers | (isExecutable ? 0o100 | ((readers & 0o044) >> 2) : 0)
        guard FolderSystem.set(part.file, modified: modified.map(timespec.init(nanoseconds:)), mode: mode),
            FolderSystem.sync(part.file)
        else { return false }
        guard let over else {
            // An empty folder is nobody's.
            if old?.isFolder == true { removeEmptyFolders(in: path) }
            let isPlaced = FolderSystem.rename(part.name, in: parts, to: name, in: folder)
            return isPlaced && FolderSystem.sync(folder)
        }
        // From here on the name may be that of what was displaced: who tidies up keeps it.
        let swap = "swap-\(ItemID.random())"
        guard FolderSystem.rename(part.name, in: parts, to: swap, in: parts),
            FolderSystem.exchange(swap, in: parts, with: name, in: folder)
        else {
            FolderSystem.removeFile(swap, in: parts)
            return false
        }
        _ = FolderSystem.sync(folder)
        if content(swap, in: parts)?.digest == over.digest {
            FolderSystem.removeFile(swap, in: parts)
        } else {
            keep(swap, aside)
        }
        return true
    }

    private func content(_ name: String, in folder: Descriptor) -> FileContent? {
        guard let file = FolderSystem.openFile(name, in: folder), let status = FolderSystem.status(file), status.isFile,
            let digest = Self.digest(of: file)
        else { return nil }
        return FileContent(digest: digest, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
    }

    /// What was displaced and is not what was expected becomes a file of its own.
    private func keep(_ name: String, _ aside: FolderPath) {
        guard let (folder, newName) = place(aside, isMade: true),
            FolderSystem.rename(name, in: parts, to: newName, in: folder)
        else {
            _ = FolderSystem.rename(name, in: parts, to: Self.trashName(aside), in: trash)
            return
        }
    }

    func move(_ from: FolderPath, to: FolderPath) -> Bool {
        if to.folders.contains(from) || from.folders.contains(to) { return moveThroughParts(from, to) }
        guard let (old, name) = place(from), let (new, newName) = place(to, isMade: true) else { return false }
        if FolderSystem.status(newName, in: new)?.isFolder == true { removeEmptyFolders(in: to) }
        guard FolderSystem.rename(name, in: old, to: newName, in: new) else { return false }
        _ = FolderSystem.sync(new)
        removeEmptyFolders(above: from)
        return true
    }

    /// Moves a file to where one of its own folders is, or beneath its own name.
    private func moveThroughParts(_ from: FolderPath, _ to: FolderPath) -> Bool {
        let swap = "swap-\(ItemID.random())"
        guard let (old, name) = place(from), FolderSystem.rename(name, in: old, to: swap, in: parts) else {
            return false
        }
        removeEmptyFolders(above: from)
        if let (new, newName) = place(to, isMade: true),
            FolderSystem.rename(swap, in: parts, to: newName, in: new)
        {
            return FolderSystem.sync(new)
        }
        if let (old, name) = place(from, isMade: true) { _ = FolderSystem.rename(swap, in: parts, to: name, in: old) }
        return false
    }

    /// Puts a file in the trash, unless it is not what is expected.
    func discard(_ path: FolderPath, _ expected: FileContent) -> Bool {
        guard let (folder, name) = place(path) else { return false }
        let trashed = Self.trashName(path)
        guard FolderSystem.rename(name, in: folder, to: trashed, in: trash) else { return false }
        guard content(trashed, in: trash)?.digest == expected.digest else {
            _ = FolderSystem.rename(trashed, in: trash, to: name, in: folder)
            return false
        }
        _ = FolderSystem.sync(trash)
        removeEmptyFolders(above: path)
        return true
    }

    // MARK: Order

    private func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard let (outer, name) = place(folder), FolderSystem.removeFolder(name, in: outer) else { return }
        }
    }

    /// Removes folders in which there are only folders.
    private func removeEmptyFolders(in path: FolderPath) {
        guard let (outer, name) = place(path), let folder = FolderSystem.openFolder(name, in: outer) else { return }
        for inner in FolderSystem.names(in: folder) ?? [] {
            guard let text = String(validating: inner, as: UTF8.self),
                let path = try? FolderPath(path.text + "/" + text)
            else { continue }
            if FolderSystem.status(text, in: folder)?.isFolder == true { removeEmptyFolders(in: path) }
        }
        _ = FolderSystem.removeFolder(name, in: outer)
    }

    private static let trashDays = 30

    private static func trashName(_ path: FolderPath) -> String {
        let day = Int(Date().timeIntervalSince1970) / 86_400
        return "\(day)-\(ItemID.random())-\(String(path.names[path.names.count - 1].prefix(48)))"
    }

    /// What a process that was killed has left: half a file is nothing, what was displaced is kept in the trash.
    private func tidy() {
        for name in (FolderSystem.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            if name.hasPrefix("swap-"), let path = try? FolderPath(name) {
                _ = FolderSystem.rename(name, in: parts, to: Self.trashName(path), in: trash)
            } else {
                FolderSystem.removeFile(name, in: parts)
            }
        }
        let today = Int(Date().timeIntervalSince1970) / 86_400
        for name in (FolderSystem.names(in: trash) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            guard let day = name.split(separator: "-").first.flatMap({ Int($0) }), day + Self.trashDays < today else {
                continue
            }
            FolderSystem.removeFile(name, in: trash)
        }
    }
}
