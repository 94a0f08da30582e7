public import Foundation

/// A file that a sync has taken out of a folder: it was deleted elsewhere, or a later version has come over it.
public struct TrashEntry: Hashable, Sendable {
    /// The name of the file in `.saltern/trash`, by which ``FolderSync/restore(_:)`` takes it.
    public let name: String
    /// Where the file was; for a file that another device of the disk has put there, its last name alone.
    public let path: FolderPath
    public let byteCount: Int64
    /// The day on which the file came into the trash (UTC), as the clock said then.
    public let day: Date
}

extension FolderSync {
    private static let restoredNames = 1_000

    /// Returns the files in the trash of the folder, by path and day. Empty for a folder that is not in sync here.
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

    /// Moves a file from the trash back into the folder; the next round sends it. Where something has its path, it gets a name
    /// beside it: nothing is replaced.
    /// - Parameter name: ``TrashEntry/name``.
    /// - Returns: Where the file is.
    /// - Throws: ``FolderError/vault(_:)`` with ``VaultError/notFound`` for a name that is not in the trash,
    ///   ``FolderError/unusable`` when the file cannot be moved.
    @discardableResult
    public func restore(_ name: String) async throws -> FolderPath {
        do {
            guard let (tree, folder) = try await openTrash(), tree.trashNames()?.contains(name) == true else {
                throw VaultError.notFound
            }
            let known = try await vault.trashedFiles(in: folder)
            guard let path = known[name]?.path ?? FolderTree.path(ofTrashName: name) else { throw VaultError.notFound }
            for number in 0..<Self.restoredNames {
                let target = number == 0 ? path : path.suffixed(number == 1 ? "restored" : "restored, \(number)")
                if tree.bringBack(name, to: target) {
                    try await vault.setTrashed(known.filter { $0.key != name }, after: known, in: folder)
                    return target
                }
            }
            throw FolderError.unusable
        } catch let error as VaultError {
            throw FolderError.vault(error)
        }
    }

    /// Opens a folder that is in sync here.
    private func openTrash() async throws -> (FolderTree, ItemID)? {
        try await refuseWrongPlace()
        guard let folder = system.openRoot(root), let marker = FolderTree.marker(in: folder, system),
            try await vault.place(ofFolder: marker.id) != nil
        else { return nil }
        return (try FolderTree(root, system), marker.id)
    }

    private static func entry(_ name: String, _ path: FolderPath?, _ tree: FolderTree) -> TrashEntry? {
        guard let path = path ?? FolderTree.path(ofTrashName: name), let signature = tree.trashSignature(name),
            let day = FolderTree.day(ofTrashName: name)
        else { return nil }
        let date = Date(timeIntervalSince1970: Double(day) * 86_400)
        return TrashEntry(name: name, path: path, byteCount: signature.byteCount, day: date)
    }
}
