internal import Foundation

extension FolderTree {
    /// Creates a file that is being fetched.
    func newPart() throws(FolderError) -> (name: String, file: Descriptor) {
        let name = "part-\(ItemID.random())"
        guard let file = system.createFile(name, in: parts) else { throw .unusable }
        return (name, file)
    }

    /// The prefix of a download in `parts`. A later round continues an interrupted one.
    static let fetchPrefix = "fetch-"

    /// Opens the remaining file of an earlier download of an item, or creates it. The file is locked, because another
    /// process may sync the folder between two pieces.
    /// - Returns: nil while another process fetches the item.
    func fetchPart(_ item: ItemID) throws(FolderError) -> (name: String, file: Descriptor)? {
        let name = Self.fetchPrefix + item.description
        if let file = system.openForAppending(name, in: parts), let status = system.status(file), status.isFile,
            status.st_nlink <= 1
        {
            return system.lock(file) && isPart(name, file) ? (name, file) : nil
        }
        if let found = system.status(name, in: parts) {
            // Another process has created it since.
            if found.isFile, found.st_nlink <= 1 { return nil }
            system.removeFile(name, in: parts)
        }
        guard let file = system.createFile(name, in: parts) else {
            if system.status(name, in: parts) != nil { return nil }
            throw .unusable
        }
        return system.lock(file) && isPart(name, file) ? (name, file) : nil
    }

    /// Returns true when a name in `parts` belongs to an open file.
    private func isPart(_ name: String, _ file: Descriptor) -> Bool {
        guard let named = system.status(name, in: parts), let own = system.status(file) else { return false }
        return (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)
    }

    /// Removes the remains of downloads that no later round continues.
    func removeFetches() {
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) })
        where name.hasPrefix(Self.fetchPrefix) && !unfinishedFetches.contains(name) {
            // Another process may be fetching it.
            let file = system.openForAppending(name, in: parts)
            if let file, system.lock(file), isPart(name, file) { system.removeFile(name, in: parts) }
        }
    }

    func removePart(_ name: String) { system.removeFile(name, in: parts) }

    /// Moves a complete file to its path. The displaced file goes to the trash, because the server may no longer have
    /// it.
    /// - Parameters:
    ///   - over: The expected file at the path. Another one becomes a conflict copy at `aside`.
    ///   - trashed: The name that it gets in the trash; nil for a new one.
    /// - Returns: False when nothing was changed.
    func place(
        _ part: (name: String, file: Descriptor), at path: FolderPath, over: FileContent?, _ new: FileContent,
        modified: Int64?, aside: FolderPath, trashed: String? = nil
    ) -> Bool {
        guard let (folder, name) = place(path, isMade: true) else { return false }
        let old = system.status(name, in: folder)
        let mode = Self.mode(old.map { $0.st_mode } ?? 0o600, isExecutable: new.isExecutable)
        // On a file system without modes or times only the content is written.
        _ = system.set(part.file, modified: modified.map(timespec.init(nanoseconds:)), mode: mode)
        guard system.sync(part.file) else { return false }
        guard let over else {
            // An empty folder can be removed.
            if old?.isFolder == true { removeEmptyFolders(in: path) }
            let own = "part-\(ItemID.random())"
            guard take(part, as: own) else { return false }
            guard system.rename(own, in: parts, to: name, in: folder) else {
                _ = system.rename(own, in: parts, to: part.name, in: parts)
                return false
            }
            return system.sync(folder)
        }
        // From here on the name may be that of the displaced file, which a clean-up keeps.
        let trashed = trashed ?? Self.trashName(path)
        let swap = Self.swapPrefix + trashed
        guard take(part, as: swap) else { return false }
        guard system.exchange(swap, in: parts, with: name, in: folder) else {
            system.removeFile(swap, in: parts)
            return false
        }
        _ = system.sync(folder)
        let displaced = content(swap, in: parts)?.digest
        if displaced == over.digest || displaced == new.digest {
            // Also with the new content: a program that has it open may continue to write to it.
            moveToTrash(swap, as: trashed, displaced == over.digest ? over : new)
        } else {
            keep(swap, aside)
        }
        return true
    }

    /// Gives a part a name that no other process uses. The former name may belong to another process's part.
    private func take(_ part: (name: String, file: Descriptor), as name: String) -> Bool {
        guard system.rename(part.name, in: parts, to: name, in: parts) else { return false }
        if isPart(name, part.file) { return true }
        _ = system.rename(name, in: parts, to: part.name, in: parts)
        return false
    }

    /// Returns a mode with or without the executable bits, for the users with read access to the file.
    private static func mode(_ mode: mode_t, isExecutable: Bool) -> mode_t {
        let readers = mode & 0o666
        return readers | (isExecutable ? 0o100 | ((readers & 0o044) >> 2) : 0)
    }

    /// Sets or removes the executable bit of a file. A file of another user is not changed, and neither is one on a
    /// file system that does not store the bit.
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

    /// Gives a file the executable bit, or removes it, without another change.
    /// - Returns: False when there is no such file, or when the bit cannot be changed, as that of another user's file.
    func changeExecutable(_ path: FolderPath, _ isExecutable: Bool) -> Bool {
        guard setExecutable(path, isExecutable), let (folder, name) = place(path) else { return false }
        return !keepsExecutableBit || system.status(name, in: folder)?.isExecutable == isExecutable
    }

    func content(_ name: String, in folder: Descriptor) -> FileContent? {
        guard let file = system.openFile(name, in: folder), let status = system.status(file), status.isFile,
            let digest = digest(of: file)
        else { return nil }
        return FileContent(digest: digest, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
    }

    /// Keeps a displaced file that differs from the expected one as a separate file.
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

    /// Moves a file to the path of one of its folders, below its own name, or to another spelling of its name.
    private func moveThroughParts(_ from: FolderPath, _ to: FolderPath) -> Bool {
        let id = ItemID.random().description
        defer {
            // Without a place the file waits for the next clean-up.
            if system.status(Self.movePrefix + id, in: parts) == nil {
                system.removeFile(Self.placesPrefix + id, in: parts)
            }
        }
        guard notePlaces([to, from], id), let (old, name) = place(from),
            system.rename(name, in: old, to: Self.movePrefix + id, in: parts)
        else { return false }
        removeEmptyFolders(above: from)
        return endMove(id, [to, from]) == to
    }

    static let movePrefix = "move-"
    static let placesPrefix = "places-"

    /// Records the destinations of a file that temporarily has no path, for the next process.
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

    /// Moves the file to the first possible path, otherwise to the trash.
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

    // MARK: Folders

    /// Creates a folder, and those above it.
    func makeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path, isMade: true), system.makeFolder(name, in: outer),
            system.openFolder(name, in: outer) != nil
        else { return false }
        return system.sync(outer)
    }

    /// Removes an empty folder. One with any entry stays.
    func removeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path), system.removeFolder(name, in: outer) else { return false }
        removeEmptyFolders(above: path)
        return true
    }
}

/// Cleans up: empty folders, the trash, and the remains of a process that was ended.
extension FolderTree {
    func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard !isKept(folder), let (outer, name) = place(folder), system.removeFolder(name, in: outer)
            else { return }
        }
    }

    /// Removes folders that contain only folders.
    func removeEmptyFolders(in path: FolderPath) {
        guard let (outer, name) = place(path), let folder = system.openFolder(name, in: outer) else { return }
        for inner in system.names(in: folder) ?? [] {
            guard let text = String(validating: inner, as: UTF8.self),
                let path = try? FolderPath(path.text + "/" + text)
            else { continue }
            if system.status(text, in: folder)?.isFolder == true { removeEmptyFolders(in: path) }
        }
        _ = system.removeFolder(name, in: outer)
    }

    /// Cleans up the remains of a process that was ended. A file that was being moved gets its new place, an incomplete
    /// file is removed, and a displaced file is kept in the trash. A file that cannot get a place now, such as on a
    /// full disk, stays for the next clean-up.
    func tidy() {
        for name in names(in: parts) where name.hasPrefix(Self.movePrefix) {
            let id = String(name.dropFirst(Self.movePrefix.count))
            _ = endMove(id, places(id))
        }
        let names = names(in: parts)
        let waiting = names.filter { $0.hasPrefix(Self.movePrefix) }
        var kept = Set(waiting)
        for name in waiting { kept.insert(Self.placesPrefix + name.dropFirst(Self.movePrefix.count)) }
        for name in names where !kept.contains(name) {
            if name.hasPrefix(Self.swapPrefix), let path = try? FolderPath(name) {
                let trashed = String(name.dropFirst(Self.swapPrefix.count))
                // If the trash already has a copy of it, both are kept.
                let isThere =
                    Self.isTrashName(trashed) && system.rename(name, in: parts, to: trashed, in: trash)
                if !isThere { _ = system.rename(name, in: parts, to: Self.trashName(path), in: trash) }
            } else if !name.hasPrefix(Self.fetchPrefix) {
                system.removeFile(name, in: parts)
            }
        }
    }

    /// Removes new markers that a process has left behind. A younger one may be that of a running process.
    func removeAbandonedMarkers() {
        let now = timespecNow()
        for name in names(in: corner) where name.hasPrefix(Self.newMarkerPrefix) {
            let changed = system.status(name, in: corner)?.signature.changed ?? now
            if changed < now - Self.abandonedMarkerAge { system.removeFile(name, in: corner) }
        }
    }

    /// A day, in nanoseconds.
    private static let abandonedMarkerAge: Int64 = 86_400_000_000_000

    private func names(in folder: Descriptor) -> [String] {
        (system.names(in: folder) ?? []).map { String(decoding: $0, as: UTF8.self) }
    }
}
