public import Foundation

/// A file that a sync has removed from a folder: another device has deleted it, or a later version has replaced it.
public struct TrashEntry: Hashable, Sendable {
    /// The name of the file in `.saltern/trash`, for ``FolderSync/restore(_:)``.
    public let name: String
    /// The earlier path of the file. If another device of the disk has put it there, only its last name.
    public let path: FolderPath
    /// The length of the file, in bytes.
    public let byteCount: Int64
    /// The day on which the file was put in the trash (UTC), by the clock of that device.
    public let day: Date
}

extension FolderSync {
    /// The maximum number of names that are tried beside a path.
    private static let restoredNames = 1_000

    /// Returns the files in the trash of the folder, by path and day. The list is empty for a folder that is not synced
    /// with this vault.
    /// - Throws: ``FolderError``, as ``run()`` does for a folder that is rejected.
    public func trash() async throws -> [TrashEntry] {
        do {
            guard let (tree, folder) = try await openTrash() else { return [] }
            let known = try await records.trashedFiles(in: folder)
            return (tree.trash.names() ?? []).compactMap { Self.entry($0, known[$0]?.path, tree) }.sorted {
                ($0.path, $0.day, $0.name) < ($1.path, $1.day, $1.name)
            }
        } catch let error as VaultError {
            throw FolderError.vault(error)
        }
    }

    /// Moves a file from the trash back into the folder; the next round sends it. Nothing is replaced: if the path of
    /// the file, or of a folder above it, is in use, it gets another name.
    /// - Parameter name: ``TrashEntry/name``.
    /// - Returns: The path of the file.
    /// - Throws: ``FolderError/vault(_:)`` with ``VaultError/notFound`` for a name that is not in the trash,
    ///   ``FolderError/unusable`` when the file cannot be moved.
    @discardableResult
    public func restore(_ name: String) async throws -> FolderPath {
        do {
            guard let (tree, folder) = try await openTrash(), FolderTrash.isName(name),
                tree.trash.signature(name) != nil,
                let path = try await records.trashedFile(name, in: folder)?.path ?? FolderTrash.path(ofName: name)
            else { throw VaultError.notFound }
            guard let target = Self.bringBack(name, to: path, in: tree) else { throw FolderError.unusable }
            try await records.forgetTrashed(name, in: folder)
            return target
        } catch let error as VaultError {
            throw FolderError.vault(error)
        }
    }

    /// Opens a synced folder; nil for one that is not synced.
    private func openTrash() async throws -> (FolderTree, ItemID)? {
        guard system.openRoot(root) != nil else { throw FolderError.unusable }
        guard let marker = try await refuseWrongPlace(), try await records.place(ofFolder: marker.id) != nil else {
            return nil
        }
        let tree = try FolderTree(root, system)
        // Another process may have marked the folder in between.
        guard tree.marker.read()?.id == marker.id else { throw FolderError.unusable }
        tree.parts.tidy()
        return (tree, marker.id)
    }

    private static func entry(_ name: String, _ path: FolderPath?, _ tree: FolderTree) -> TrashEntry? {
        guard let path = path ?? FolderTrash.path(ofName: name), let signature = tree.trash.signature(name) else {
            return nil
        }
        let date = Date(timeIntervalSince1970: Double(FolderTrash.day(ofName: name)) * 86_400)
        return TrashEntry(name: name, path: path, byteCount: signature.byteCount, day: date)
    }

    /// Moves a file out of the trash to the first free path.
    private static func bringBack(_ name: String, to path: FolderPath, in tree: FolderTree) -> FolderPath? {
        guard let path = reachable(path, in: tree) else { return nil }
        for target in names(beside: path) {
            if tree.trash.bringBack(name, to: target) { return target }
            // Any error other than a used name would also prevent the other names.
            guard tree.root.isTaken(target), tree.trash.signature(name) != nil else { return nil }
        }
        return nil
    }

    /// Returns the path with other names for those of its folders whose place is in use, for example by a file.
    private static func reachable(_ path: FolderPath, in tree: FolderTree) -> FolderPath? {
        var path = path
        for depth in 1..<max(path.names.count, 1) {
            let folder = path.folders[depth - 1]
            if tree.root.canBeFolder(folder) { continue }
            guard let other = names(beside: folder).first(where: tree.root.canBeFolder) else { return nil }
            let rest = path.names.dropFirst(depth)
            // A folder with a shortened name, or in an outer folder, contains only this file.
            let place = other.names.count == depth ? rest : rest.suffix(1)
            guard let next = try? FolderPath((other.names + place).joined(separator: "/")) else { return nil }
            path = next
            if other.names.count != depth { break }
        }
        return path
    }

    private static func names(beside path: FolderPath) -> some Sequence<FolderPath> {
        (0..<restoredNames).lazy.map { number in
            number == 0 ? path : path.suffixed(number == 1 ? "restored" : "restored, \(number)")
        }
    }
}

/// Compares the files in the folder's trash again, because a program that has a displaced file open continues to write
/// to it there.
extension FolderSync {
    /// Compares every file in the trash with its content when it was put there. One that was written since returns to
    /// the folder as a conflict copy, and the program that has it open then writes there.
    /// - Returns: True when a file has returned.
    func reviewTrash(_ round: Round, _ report: inout FolderReport) async throws -> Bool {
        guard let names = round.tree.trash.names() else { return false }
        let known = try await records.trashedFiles(in: round.folder)
        let present = Set(names)
        var files = known.filter { present.contains($0.key) }
        var hasReturned = false
        for name in names {
            try Task.checkCancellation()
            if try review(name, &files, round, &report) { hasReturned = true }
        }
        try await records.setTrashed(files, after: known, in: round.folder)
        return hasReturned
    }

    /// Removes expired files from the trash. Each file is read once more before.
    func emptyTrash(_ round: Round, _ report: inout FolderReport) async throws {
        guard let age = try await vault.confirmedAge() else { return }
        let known = try await records.trashedFiles(in: round.folder)
        var files = known
        for (name, file) in known {
            try Task.checkCancellation()
            guard let since = file.since else {
                files[name]?.since = age
                continue
            }
            guard since <= age - Store.keptSeconds else { continue }
            files[name]?.signature = nil
            if try review(name, &files, round, &report) { continue }
            guard files[name]?.digest == file.digest else { continue }
            if round.tree.trash.signature(name) != nil {
                guard round.tree.trash.isRemovable(name, file.digest) else { continue }
                round.tree.trash.remove(name)
            }
            files[name] = nil
        }
        try await records.setTrashed(files, after: known, in: round.folder)
    }

    /// Compares one file.
    /// - Returns: True when it has returned to the folder.
    private func review(
        _ name: String, _ files: inout [String: TrashedFile], _ round: Round, _ report: inout FolderReport
    ) throws -> Bool {
        let now = FileSignature.now()
        guard let signature = round.tree.trash.signature(name), files[name]?.signature != signature,
            let digest = round.tree.trash.digest(name)
        else { return false }
        var file = files[name] ?? TrashedFile(path: FolderTrash.path(ofName: name), digest: digest)
        if file.digest != digest, !round.has(digest) {
            // A program that rewrites a file empties it first.
            guard signature.byteCount > 0, returnToFolder(name, file.path, round, &report) else { return false }
            files[name] = nil
            return true
        }
        file.digest = digest
        file.signature = signature.isYoung(at: now) ? nil : signature
        files[name] = file
        return false
    }

    private func returnToFolder(
        _ name: String, _ path: FolderPath?, _ round: Round, _ report: inout FolderReport
    ) -> Bool {
        guard let path = path ?? FolderTrash.path(ofName: name) else { return false }
        let copy = path.conflicting("\(round.writer), \(round.date), \(ItemID.random().description.prefix(8))")
        guard round.tree.trash.bringBack(name, to: copy) else {
            report.warn(.failed, path.text, system.takeFailure())
            return false
        }
        report.conflicts.append(copy)
        return true
    }
}

/// The folder `.saltern/trash`: files that were displaced, or that other devices have deleted.
struct FolderTrash {
    private let system: any FolderSystem
    private let root: FolderRoot
    private let trash: Descriptor

    static let folder = "trash"

    init(_ system: any FolderSystem, _ root: FolderRoot, _ trash: Descriptor) {
        self.system = system
        self.root = root
        self.trash = trash
    }

    // MARK: Names

    /// Returns a new name in the trash: the day, an id and the name. The day is only for users.
    static func newName(_ path: FolderPath) -> String {
        let day = Int(Date().timeIntervalSince1970) / 86_400
        return "\(day)-\(ItemID.random())-\(path.names[path.names.count - 1].shortened(toBytes: 128))"
    }

    /// Returns true for a name of the kit. Files that a user has put into the trash are not changed.
    static func isName(_ name: String) -> Bool {
        parts(ofName: name) != nil && !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    }

    /// Returns the path from a name in the trash, for a file without further data.
    static func path(ofName name: String) -> FolderPath? {
        parts(ofName: name).flatMap { try? FolderPath($0) } ?? (try? FolderPath("file"))
    }

    /// Returns the day in a name in the trash, counted from 1970; 0 for one that is out of range.
    static func day(ofName name: String) -> Int {
        let day = name.firstIndex(of: "-").flatMap { Int(name[..<$0]) } ?? 0
        return dayRange.contains(day) ? day : 0
    }

    /// The valid days, up to the end of the year 9999.
    private static let dayRange = 0..<2_932_897

    /// Returns the earlier name of the file.
    private static func parts(ofName name: String) -> String? {
        guard let dash = name.firstIndex(of: "-"), Int(name[..<dash]) != nil else { return nil }
        let rest = name[name.index(after: dash)...]
        let idLength = 36
        guard rest.utf8.count > idLength, ItemID(String(decoding: rest.utf8.prefix(idLength), as: UTF8.self)) != nil
        else { return nil }
        return String(decoding: rest.utf8.dropFirst(idLength + 1), as: UTF8.self)
    }

    // MARK: Files

    /// Returns the names of the kit's files in the trash; nil when the trash cannot be read.
    func names() -> [String]? {
        system.names(in: trash)?.compactMap { String(validating: $0, as: UTF8.self) }.filter(Self.isName).sorted()
    }

    /// Moves a file of another folder to the trash.
    func receive(_ name: String, from folder: Descriptor, as newName: String) -> Bool {
        system.rename(name, in: folder, to: newName, in: trash)
    }

    func sync() { _ = system.sync(trash) }

    /// Returns the kernel's data of a file in the trash; nil for other entries.
    func signature(_ name: String) -> FileSignature? {
        system.status(name, in: trash).flatMap { $0.isFile ? $0.signature : nil }
    }

    /// Returns the digest of a file in the trash.
    func digest(_ name: String) -> [UInt8]? { system.openFile(name, in: trash).flatMap { system.digest(of: $0) } }

    /// Returns true when a file in the trash has this content, or is empty. A file that cannot be read may have been
    /// written since.
    func isRemovable(_ name: String, _ digest: [UInt8]) -> Bool {
        guard let signature = signature(name) else { return false }
        return signature.byteCount == 0 || self.digest(name) == digest
    }

    /// Moves a file out of the trash to a free path.
    func bringBack(_ name: String, to path: FolderPath) -> Bool {
        guard let (folder, newName) = root.place(path, isMade: true),
            system.rename(name, in: trash, to: newName, in: folder)
        else { return false }
        return system.sync(folder)
    }

    func remove(_ name: String) { system.removeFile(name, in: trash) }
}

/// Files in the trash of a folder, by their names there.
extension Store {
    private static let columns = "name, path, digest, inode, byte_count, modified, changed, since"

    func trashedFiles(in folder: ItemID) throws -> [String: TrashedFile] {
        let files = try database.rows(
            "SELECT \(Self.columns) FROM folder_trash WHERE folder = ?", .blob(folder.bytes), decode: Self.trashed)
        return Dictionary(files) { _, last in last }
    }

    func trashedFile(_ name: String, in folder: ItemID) throws -> TrashedFile? {
        try database.rows(
            "SELECT \(Self.columns) FROM folder_trash WHERE folder = ? AND name = ?", .blob(folder.bytes), .text(name),
            decode: Self.trashed
        ).first?.1
    }

    private static func trashed(_ row: SQLiteRow) throws -> (String, TrashedFile) {
        guard let name = row.text(0), let digest = row.blob(2) else { throw StoreError.damaged }
        var file = TrashedFile(path: row.text(1).flatMap { try? FolderPath($0) }, digest: digest)
        if let inode = row.integer(3), let count = row.integer(4), let modified = row.integer(5),
            let changed = row.integer(6)
        {
            file.signature = FileSignature(
                inode: UInt64(bitPattern: inode), byteCount: count, modified: modified, changed: changed)
        }
        file.since = row.integer(7)
        return (name, file)
    }

    /// Stores a file, or removes it with nil.
    func setTrashed(_ name: String, _ file: TrashedFile?, in folder: ItemID) throws {
        guard let file else {
            try database.execute(
                "DELETE FROM folder_trash WHERE folder = ? AND name = ?", .blob(folder.bytes), .text(name))
            return
        }
        let signature = file.signature
        try database.execute(
            """
            INSERT OR REPLACE INTO folder_trash
                (folder, name, path, digest, inode, byte_count, modified, changed, since)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, .blob(folder.bytes), .text(name), file.path.map { .text($0.text) } ?? .null, .blob(file.digest),
            .optional(signature.map { Int64(bitPattern: $0.inode) }), .optional(signature?.byteCount),
            .optional(signature?.modified), .optional(signature?.changed), .optional(file.since))
    }
}
