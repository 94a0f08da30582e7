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
            return (tree.trashNames() ?? []).compactMap { Self.entry($0, known[$0]?.path, tree) }.sorted {
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
            guard let (tree, folder) = try await openTrash(), FolderTree.isTrashName(name),
                tree.trashSignature(name) != nil,
                let path = try await records.trashedFile(name, in: folder)?.path ?? FolderTree.path(ofTrashName: name)
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
        guard tree.marker()?.id == marker.id else { throw FolderError.unusable }
        tree.tidy()
        return (tree, marker.id)
    }

    private static func entry(_ name: String, _ path: FolderPath?, _ tree: FolderTree) -> TrashEntry? {
        guard let path = path ?? FolderTree.path(ofTrashName: name), let signature = tree.trashSignature(name) else {
            return nil
        }
        let date = Date(timeIntervalSince1970: Double(FolderTree.day(ofTrashName: name)) * 86_400)
        return TrashEntry(name: name, path: path, byteCount: signature.byteCount, day: date)
    }

    /// Moves a file out of the trash to the first free path.
    private static func bringBack(_ name: String, to path: FolderPath, in tree: FolderTree) -> FolderPath? {
        guard let path = reachable(path, in: tree) else { return nil }
        for target in names(beside: path) {
            if tree.bringBack(name, to: target) { return target }
            // Any error other than a used name would also prevent the other names.
            guard tree.isTaken(target), tree.trashSignature(name) != nil else { return nil }
        }
        return nil
    }

    /// Returns the path with other names for those of its folders whose place is in use, for example by a file.
    private static func reachable(_ path: FolderPath, in tree: FolderTree) -> FolderPath? {
        var path = path
        for depth in 1..<max(path.names.count, 1) {
            let folder = path.folders[depth - 1]
            if tree.canBeFolder(folder) { continue }
            guard let other = names(beside: folder).first(where: tree.canBeFolder) else { return nil }
            let rest = path.names.dropFirst(depth)
            // A folder whose name was shortened, or moved to an outer folder, contains only this file.
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
