internal import Foundation

extension FolderTree {
    /// A file that is being fetched.
    func newPart() throws(FolderError) -> (name: String, file: Descriptor) {
        let name = "part-\(ItemID.random())"
        guard let file = system.createFile(name, in: parts) else { throw .unusable }
        return (name, file)
    }

    /// The name of a download in `parts` begins with this. A later round goes on with one that was cut off.
    static let fetchPrefix = "fetch-"

    /// Opens the file that an earlier download of an item has left, or creates it. It is locked: another process may sync the
    /// folder between two pieces of it.
    /// - Returns: Nil while another process fetches the item.
    func fetchPart(_ item: ItemID) throws(FolderError) -> (name: String, file: Descriptor)? {
        let name = Self.fetchPrefix + item.description
        if let file = system.openForAppending(name, in: parts), let status = system.status(file), status.isFile,
            status.st_nlink <= 1
        {
            return system.lock(file) && isPart(name, file) ? (name, file) : nil
        }
        system.removeFile(name, in: parts)
        guard let file = system.createFile(name, in: parts) else { throw .unusable }
        return system.lock(file) && isPart(name, file) ? (name, file) : nil
    }

    /// Returns whether a name in `parts` is that of a file which is open.
    private func isPart(_ name: String, _ file: Descriptor) -> Bool {
        guard let named = system.status(name, in: parts), let own = system.status(file) else { return false }
        return (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)
    }

    /// Removes what downloads have left that no later round goes on with.
    func removeFetches() {
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) })
        where name.hasPrefix(Self.fetchPrefix) && !unfinishedFetches.contains(name) {
            // Another process may be fetching it.
            if let file = system.openForAppending(name, in: parts), !system.lock(file) { continue }
            system.removeFile(name, in: parts)
        }
    }

    func removePart(_ name: String) { system.removeFile(name, in: parts) }

    /// Puts a whole file in its place. What it displaces goes to the trash: nobody knows whether the server has that still.
    /// - Parameters:
    ///   - over: What is expected there; when it is something else that becomes a conflict copy at `aside`.
    ///   - trashed: The name that it gets in the trash; nil for a new one.
    /// - Returns: false when nothing was changed.
    func place(
        _ part: (name: String, file: Descriptor), at path: FolderPath, over: FileContent?, _ new: FileContent,
        modified: Int64?, aside: FolderPath, trashed: String? = nil
    ) -> Bool {
        guard let (folder, name) = place(path, isMade: true) else { return false }
        let old = system.status(name, in: folder)
        let mode = Self.mode(old.map { $0.st_mode } ?? 0o600, isExecutable: new.isExecutable)
        // A file system without modes or times has the content all the same.
        _ = system.set(part.file, modified: modified.map(timespec.init(nanoseconds:)), mode: mode)
        guard system.sync(part.file) else { return false }
        guard let over else {
            // An empty folder is nobody's.
            if old?.isFolder == true { removeEmptyFolders(in: path) }
            let isPlaced = system.rename(part.name, in: parts, to: name, in: folder)
            return isPlaced && system.sync(folder)
        }
        // From here on the name may be that of what was displaced: who tidies up keeps it.
        let trashed = trashed ?? Self.trashName(path)
        let swap = Self.swapPrefix + trashed
        guard system.rename(part.name, in: parts, to: swap, in: parts),
            system.exchange(swap, in: parts, with: name, in: folder)
        else {
            system.removeFile(swap, in: parts)
            return false
        }
        _ = system.sync(folder)
        let displaced = content(swap, in: parts)?.digest
        if displaced == new.digest {
            system.removeFile(swap, in: parts)
        } else if displaced == over.digest {
            moveToTrash(swap, as: trashed, over)
        } else {
            keep(swap, aside)
        }
        return true
    }

    /// Returns a mode with or without the executable bits: for those who may read the file.
    private static func mode(_ mode: mode_t, isExecutable: Bool) -> mode_t {
        let readers = mode & 0o666
        return readers | (isExecutable ? 0o100 | ((readers & 0o044) >> 2) : 0)
    }

    /// Gives a file the executable bit, or takes it away. A file of another user stays as it is, and so does one on a file system
    /// that does not keep the bit.
    /// - Returns: False when there is no such file.
    func setExecutable(_ path: FolderPath, _ isExecutable: Bool) -> Bool {
        guard let (folder, name) = place(path), let file = system.openFile(name, in: folder),
            let status = system.status(file), status.isFile
        else { return false }
        if keepsExecutableBit, status.isExecutable != isExecutable {
            _ = system.set(file, modified: nil, mode: Self.mode(status.st_mode, isExecutable: isExecutable))
        }
        return true
    }

    func content(_ name: String, in folder: Descriptor) -> FileContent? {
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

    static let movePrefix = "move-"
    private static let placesPrefix = "places-"

    /// Where a file goes that has no place for a moment: for who is killed then, and starts again.
    private func notePlaces(_ places: [FolderPath], _ id: String) -> Bool {
        guard let file = system.createFile(Self.placesPrefix + id, in: parts) else { return false }
        let text = places.map(\.text).joined(separator: "\0")
        return Array(text.utf8).withUnsafeBytes { system.write($0, to: file) } && system.sync(file)
    }

    func places(_ id: String) -> [FolderPath] {
        guard let file = system.openFile(Self.placesPrefix + id, in: parts) else { return [] }
        var bytes = [UInt8](repeating: 0, count: 1 << 14)
        let count = bytes.withUnsafeMutableBytes { system.read(file, at: 0, into: $0) } ?? 0
        return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\0").compactMap {
            try? FolderPath($0)
        }
    }

    /// Puts it where there is room, the first place first, else in the trash.
    func endMove(_ id: String, _ places: [FolderPath]) -> FolderPath? {
        let name = Self.movePrefix + id
        for path in places {
            guard let (folder, newName) = place(path, isMade: true) else { continue }
            if system.status(newName, in: folder)?.isFolder == true { removeEmptyFolders(in: path) }
            guard system.rename(name, in: parts, to: newName, in: folder) else { continue }
            _ = system.sync(folder)
            return path
        }
        let last = places.last ?? (try? FolderPath(name))
        if let last { _ = system.rename(name, in: parts, to: Self.trashName(last), in: trash) }
        return nil
    }
}
