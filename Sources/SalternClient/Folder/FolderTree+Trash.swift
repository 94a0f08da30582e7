internal import Foundation

/// The folder's trash: files that were displaced, or that other devices have deleted.
extension FolderTree {
    /// The prefix of a file in `parts` that is about to be moved to the trash, before its name there.
    static let swapPrefix = "swap-"

    /// Returns a new name in the trash: the day, an id and the name. The day is only for users.
    static func trashName(_ path: FolderPath) -> String {
        let day = Int(Date().timeIntervalSince1970) / 86_400
        return "\(day)-\(ItemID.random())-\(path.names[path.names.count - 1].shortened(toBytes: 128))"
    }

    /// Returns true for a name of the kit. Files that a user has put into the trash are not changed.
    static func isTrashName(_ name: String) -> Bool {
        parts(ofTrashName: name) != nil && !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    }

    /// Returns the path from a name in the trash, for a file without further data.
    static func path(ofTrashName name: String) -> FolderPath? {
        parts(ofTrashName: name).flatMap { try? FolderPath($0) } ?? (try? FolderPath("file"))
    }

    /// Returns the day in a name in the trash, counted from 1970; 0 for one that is out of range.
    static func day(ofTrashName name: String) -> Int {
        let day = name.firstIndex(of: "-").flatMap { Int(name[..<$0]) } ?? 0
        return dayRange.contains(day) ? day : 0
    }

    /// The valid days, up to the end of the year 9999.
    private static let dayRange = 0..<2_932_897

    /// Returns the earlier name of the file.
    private static func parts(ofTrashName name: String) -> String? {
        guard let dash = name.firstIndex(of: "-"), Int(name[..<dash]) != nil else { return nil }
        let rest = name[name.index(after: dash)...]
        let idLength = 36
        guard rest.utf8.count > idLength, ItemID(String(decoding: rest.utf8.prefix(idLength), as: UTF8.self)) != nil
        else { return nil }
        return String(decoding: rest.utf8.dropFirst(idLength + 1), as: UTF8.self)
    }

    /// Returns the names of the kit's files in the trash; nil when the trash cannot be read.
    func trashNames() -> [String]? {
        system.names(in: trash)?.compactMap { String(validating: $0, as: UTF8.self) }.filter(Self.isTrashName).sorted()
    }

    /// Puts a file of `parts` in the trash. A file with further hard links is copied, because later writes through them
    /// would change the trash, too.
    func moveToTrash(_ swap: String, as name: String, _ expected: FileContent) {
        let links = system.status(swap, in: parts)?.st_nlink ?? 1
        if links > 1, copyToTrash(swap, as: name, expected) {
            system.removeFile(swap, in: parts)
        } else {
            _ = system.rename(swap, in: parts, to: name, in: trash)
        }
        _ = system.sync(trash)
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
        guard isWhole, digest(of: part.file) == expected.digest, system.sync(part.file),
            system.rename(part.name, in: parts, to: name, in: trash)
        else {
            removePart(part.name)
            return false
        }
        return true
    }

    /// Puts a file in the trash, unless it differs from the expected one.
    /// - Parameter name: Its name there; nil for a new one.
    func discard(_ path: FolderPath, _ expected: FileContent, as name: String? = nil) -> Bool {
        guard let (folder, oldName) = place(path) else { return false }
        let name = name ?? Self.trashName(path)
        let swap = Self.swapPrefix + name
        guard system.rename(oldName, in: folder, to: swap, in: parts) else { return false }
        guard content(swap, in: parts)?.digest == expected.digest else {
            _ = system.rename(swap, in: parts, to: oldName, in: folder)
            return false
        }
        moveToTrash(swap, as: name, expected)
        removeEmptyFolders(above: path)
        return true
    }

    /// Returns the kernel's data of a file in the trash; nil for other entries.
    func trashSignature(_ name: String) -> FileSignature? {
        system.status(name, in: trash).flatMap { $0.isFile ? $0.signature : nil }
    }

    /// Returns the digest of a file in the trash.
    func trashDigest(_ name: String) -> [UInt8]? { system.openFile(name, in: trash).flatMap { digest(of: $0) } }

    /// Returns true when a file in the trash has this content, or is empty. A file that cannot be read may have been
    /// written since.
    func isRemovable(_ name: String, _ digest: [UInt8]) -> Bool {
        guard let signature = trashSignature(name) else { return false }
        return signature.byteCount == 0 || trashDigest(name) == digest
    }

    /// Moves a file out of the trash to a free path.
    func bringBack(_ name: String, to path: FolderPath) -> Bool {
        guard let (folder, newName) = place(path, isMade: true),
            system.rename(name, in: trash, to: newName, in: folder)
        else { return false }
        return system.sync(folder)
    }

    /// Returns true when a path is in use, or when it cannot be determined.
    func isTaken(_ path: FolderPath) -> Bool {
        guard let (folder, name) = place(path) else { return false }
        if case .nothing? = system.entry(name, in: folder) { return false }
        return true
    }

    /// Returns true when a path is a folder, or can become one. The folders above it exist or can be created.
    func canBeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path) else { return true }
        switch system.entry(name, in: outer) {
        case nil: return false
        case .nothing: return true
        case .something:
            guard let folder = system.openFolder(name, in: outer) else { return false }
            return system.status(folder)?.st_dev == device && Self.marker(in: folder, system) == nil
        }
    }

    func removeFromTrash(_ name: String) { system.removeFile(name, in: trash) }
}
