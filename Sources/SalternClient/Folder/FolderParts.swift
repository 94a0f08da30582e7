internal import Foundation

/// The folder `.saltern/parts`: downloads in progress, and files that temporarily have no path.
///
/// After a process has ended within a step, ``tidy()`` completes the step or undoes it.
final class FolderParts {
    private let system: any FolderSystem
    private let root: FolderRoot
    private let parts: Descriptor
    private let trash: FolderTrash
    /// The names of downloads that were interrupted since this folder was opened.
    private var unfinishedFetches: Set<String> = []

    static let folder = "parts"
    /// The prefix of a file that is about to be moved to the trash, before its name there.
    static let swapPrefix = "swap-"
    private static let movePrefix = "move-"
    private static let placesPrefix = "places-"

    init(_ system: any FolderSystem, _ root: FolderRoot, _ parts: Descriptor, _ trash: FolderTrash) {
        self.system = system
        self.root = root
        self.parts = parts
        self.trash = trash
    }

    // MARK: Downloads

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

    /// Records an interrupted download, which a later round continues.
    func noteUnfinished(_ name: String) { unfinishedFetches.insert(name) }

    /// Removes the remains of downloads that no later round continues.
    func removeFetches() {
        for name in system.decodedNames(in: parts)
        where name.hasPrefix(Self.fetchPrefix) && !unfinishedFetches.contains(name) {
            // Another process may be fetching it.
            let file = system.openForAppending(name, in: parts)
            if let file, system.lock(file), isPart(name, file) { system.removeFile(name, in: parts) }
        }
    }

    func removePart(_ name: String) { system.removeFile(name, in: parts) }

    // MARK: Placing

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
        guard let (folder, name) = root.place(path, isMade: true) else { return false }
        let old = system.status(name, in: folder)
        let mode = Self.mode(old.map { $0.st_mode } ?? 0o600, isExecutable: new.isExecutable)
        // On a file system without modes or times only the content is written.
        _ = system.set(part.file, modified: modified.map(timespec.init(nanoseconds:)), mode: mode)
        guard system.sync(part.file) else { return false }
        guard let over else {
            // An empty folder can be removed.
            if old?.isFolder == true { root.removeEmptyFolders(in: path) }
            let own = "part-\(ItemID.random())"
            guard take(part, as: own) else { return false }
            guard system.rename(own, in: parts, to: name, in: folder) else {
                _ = system.rename(own, in: parts, to: part.name, in: parts)
                return false
            }
            return system.sync(folder)
        }
        // From here on the name may be that of the displaced file, which a clean-up keeps.
        let trashed = trashed ?? FolderTrash.newName(path)
        let swap = Self.swapPrefix + trashed
        guard take(part, as: swap) else { return false }
        guard system.exchange(swap, in: parts, with: name, in: folder) else {
            system.removeFile(swap, in: parts)
            return false
        }
        _ = system.sync(folder)
        let displaced = system.content(swap, in: parts)?.digest
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
    static func mode(_ mode: mode_t, isExecutable: Bool) -> mode_t {
        let readers = mode & 0o666
        return readers | (isExecutable ? 0o100 | ((readers & 0o044) >> 2) : 0)
    }

    /// Keeps a displaced file that differs from the expected one as a separate file.
    private func keep(_ name: String, _ aside: FolderPath) {
        guard let (folder, newName) = root.place(aside, isMade: true),
            system.rename(name, in: parts, to: newName, in: folder)
        else {
            _ = trash.receive(name, from: parts, as: FolderTrash.newName(aside))
            return
        }
    }

    /// Puts a file of `parts` in the trash. A file with further hard links is copied, because later writes through them
    /// would change the trash, too.
    private func moveToTrash(_ swap: String, as name: String, _ expected: FileContent) {
        let links = system.status(swap, in: parts)?.st_nlink ?? 1
        if links > 1, copyToTrash(swap, as: name, expected) {
            system.removeFile(swap, in: parts)
        } else {
            _ = trash.receive(swap, from: parts, as: name)
        }
        trash.sync()
    }

    private func copyToTrash(_ swap: String, as name: String, _ expected: FileContent) -> Bool {
        guard let source = system.openFile(swap, in: parts), let status = system.status(source),
            let part = try? newPart()
        else { return false }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: Int64 = 0
        var isWhole = false
        while !isWhole {
            guard let count = buffer.withUnsafeMutableBytes({ system.read(source, at: offset, into: $0) }),
                buffer.prefix(count).withUnsafeBytes({ system.write($0, to: part.file) })
            else { break }
            offset += Int64(count)
            isWhole = count < buffer.count
        }
        _ = system.set(part.file, modified: status.st_mtim, mode: status.st_mode & 0o777)
        guard isWhole, system.digest(of: part.file) == expected.digest, system.sync(part.file),
            trash.receive(part.name, from: parts, as: name)
        else {
            removePart(part.name)
            return false
        }
        return true
    }

    /// Puts a file in the trash, unless it differs from the expected one.
    /// - Parameter name: Its name there; nil for a new one.
    func discard(_ path: FolderPath, _ expected: FileContent, as name: String? = nil) -> Bool {
        guard let (folder, oldName) = root.place(path) else { return false }
        let name = name ?? FolderTrash.newName(path)
        let swap = Self.swapPrefix + name
        guard system.rename(oldName, in: folder, to: swap, in: parts) else { return false }
        guard system.content(swap, in: parts)?.digest == expected.digest else {
            _ = system.rename(swap, in: parts, to: oldName, in: folder)
            return false
        }
        moveToTrash(swap, as: name, expected)
        root.removeEmptyFolders(above: path)
        return true
    }

    // MARK: Moving

    func move(_ from: FolderPath, to: FolderPath) -> Bool {
        let (oldKey, newKey) = (root.key(from), root.key(to))
        if oldKey == newKey || to.folders.contains(where: { root.key($0) == oldKey })
            || from.folders.contains(where: { root.key($0) == newKey })
        {
            return moveThroughParts(from, to)
        }
        guard let (old, name) = root.place(from), let (new, newName) = root.place(to, isMade: true) else {
            return false
        }
        if system.status(newName, in: new)?.isFolder == true { root.removeEmptyFolders(in: to) }
        guard system.rename(name, in: old, to: newName, in: new) else { return false }
        _ = system.sync(new)
        root.removeEmptyFolders(above: from)
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
        guard notePlaces([to, from], id), let (old, name) = root.place(from),
            system.rename(name, in: old, to: Self.movePrefix + id, in: parts)
        else { return false }
        root.removeEmptyFolders(above: from)
        return endMove(id, [to, from]) == to
    }

    /// Records the destinations of a file that temporarily has no path, for the next process.
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

    /// Moves the file to the first possible path, otherwise to the trash.
    private func endMove(_ id: String, _ places: [FolderPath]) -> FolderPath? {
        let name = Self.movePrefix + id
        for path in places {
            guard let (folder, newName) = root.place(path, isMade: true) else { continue }
            if system.status(newName, in: folder)?.isFolder == true { root.removeEmptyFolders(in: path) }
            guard system.rename(name, in: parts, to: newName, in: folder) else { continue }
            _ = system.sync(folder)
            return path
        }
        let last = places.last ?? (try? FolderPath(name))
        if let last { _ = trash.receive(name, from: parts, as: FolderTrash.newName(last)) }
        return nil
    }

    /// Cleans up the remains of a process that was ended. A file that was being moved gets its new place, an incomplete
    /// file is removed, and a displaced file is kept in the trash. A file that cannot get a place now, such as on a
    /// full disk, stays for the next clean-up.
    func tidy() {
        for name in system.decodedNames(in: parts) where name.hasPrefix(Self.movePrefix) {
            let id = String(name.dropFirst(Self.movePrefix.count))
            _ = endMove(id, places(id))
        }
        let names = system.decodedNames(in: parts)
        let waiting = names.filter { $0.hasPrefix(Self.movePrefix) }
        var kept = Set(waiting)
        for name in waiting { kept.insert(Self.placesPrefix + name.dropFirst(Self.movePrefix.count)) }
        for name in names where !kept.contains(name) {
            if name.hasPrefix(Self.swapPrefix), let path = try? FolderPath(name) {
                let trashed = String(name.dropFirst(Self.swapPrefix.count))
                // If the trash already has a copy of it, both are kept.
                let isThere =
                    FolderTrash.isName(trashed) && trash.receive(name, from: parts, as: trashed)
                if !isThere { _ = trash.receive(name, from: parts, as: FolderTrash.newName(path)) }
            } else if !name.hasPrefix(Self.fetchPrefix) {
                system.removeFile(name, in: parts)
            }
        }
    }
}
