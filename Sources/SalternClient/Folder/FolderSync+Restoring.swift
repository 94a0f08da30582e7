public import Foundation

/// A file that a sync has taken out of a folder: it was deleted elsewhere, or a later version has come over it.
public struct TrashEntry: Hashable, Sendable {
    /// The name of the file in `.saltern/trash`, by which ``FolderSync/restore(_:)`` takes it.
    public let name: String
    /// Where the file was; for a file that another device of the disk has put there, its last name alone.
    public let path: FolderPath
    /// The length of the file.
    public let byteCount: Int64
    /// The day on which the file came into the trash (UTC), by the clock of the device that put it there.
    public let day: Date
}

extension FolderSync {
    /// The number of names beside a path that are tried.
    private static let restoredNames = 1_000

    /// Returns the files in the trash of the folder, by path and day. Empty for a folder that is not in sync with this vault.
    /// - Throws: ``FolderError``, as ``run()`` does for a folder that is refused.
    public func trash() async throws -> [TrashEntry] {
        do {
            guard let (tree, folder) = try await openTrash() else { return [] }
            let known = try await vault.trashedFiles(in: folder)
            return (tree.trashNames() ?? []).compactMap { Self.entry($0, known[$0]?.path, tree) }.sorted {
                ($0.path, $0.day, $0.name) < ($1.path, $1.day, $1.name)
            }
        } catch let error as VaultError {
            throw FolderError.vault(error)
        }
    }

    /// Moves a file from the trash back into the folder; the next round sends it. Nothing is replaced: where something has the
    /// path of the file, or of a folder that it was in, the file or the folder gets a name beside it.
    /// - Parameter name: ``TrashEntry/name``.
    /// - Returns: Where the file is.
    /// - Throws: ``FolderError/vault(_:)`` with ``VaultError/notFound`` for a name that is not in the trash,
    ///   ``FolderError/unusable`` when the file cannot be moved.
    @discardableResult
    public func restore(_ name: String) async throws -> FolderPath {
        do {
            guard let (tree, folder) = try await openTrash(), FolderTree.isTrashName(name),
                tree.trashSignature(name) != nil,
                let path = try await vault.trashedFile(name, in: folder)?.path ?? FolderTree.path(ofTrashName: name)
            else { throw VaultError.notFound }
            guard let target = Self.bringBack(name, to: path, in: tree) else { throw FolderError.unusable }
            try await vault.forgetTrashed(name, in: folder)
            return target
        } catch let error as VaultError {
            throw FolderError.vault(error)
        }
    }

    /// Opens a folder that is in sync here; nil for one that is not.
    private func openTrash() async throws -> (FolderTree, ItemID)? {
        guard let folder = system.openRoot(root) else { throw FolderError.unusable }
        guard let marker = FolderTree.marker(in: folder, system) else { return nil }
        try await refuseWrongPlace()
        guard try await vault.place(ofFolder: marker.id) != nil else { return nil }
        return (try FolderTree(root, system), marker.id)
    }

    private static func entry(_ name: String, _ path: FolderPath?, _ tree: FolderTree) -> TrashEntry? {
        guard let path = path ?? FolderTree.path(ofTrashName: name), let signature = tree.trashSignature(name) else {
            return nil
        }
        let date = Date(timeIntervalSince1970: Double(FolderTree.day(ofTrashName: name)) * 86_400)
        return TrashEntry(name: name, path: path, byteCount: signature.byteCount, day: date)
    }

    /// Moves a file out of the trash to the first path at which nothing is.
    private static func bringBack(_ name: String, to path: FolderPath, in tree: FolderTree) -> FolderPath? {
        guard let path = reachable(path, in: tree) else { return nil }
        for target in names(beside: path) {
            if tree.bringBack(name, to: target) { return target }
            // Anything else than a name that is taken stops every other name, too.
            guard tree.isTaken(target), tree.trashSignature(name) != nil else { return nil }
        }
        return nil
    }

    /// Returns the path with other names for those of its folders in whose place something else is by now, such as a file.
    private static func reachable(_ path: FolderPath, in tree: FolderTree) -> FolderPath? {
        var path = path
        for depth in 1..<max(path.names.count, 1) {
            let folder = path.folders[depth - 1]
            if tree.canBeFolder(folder) { continue }
            guard let other = names(beside: folder).first(where: tree.canBeFolder) else { return nil }
            let rest = path.names.dropFirst(depth)
            // A name that has grown too long, or was put into an outer folder, has the file alone in it.
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
