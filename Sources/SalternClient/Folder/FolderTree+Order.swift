internal import Foundation

/// What is tidied up: empty folders, the trash, and what a process that was killed has left.
extension FolderTree {
    func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard !isKept(folder), let (outer, name) = place(folder), system.removeFolder(name, in: outer)
            else { return }
        }
    }

    /// Removes folders in which there are only folders.
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

    /// What a process that was killed has left: a file that was on its way arrives, half a file is nothing, what was
    /// displaced is kept in the trash.
    func tidy() {
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) })
        where name.hasPrefix(Self.movePrefix) {
            let id = String(name.dropFirst(Self.movePrefix.count))
            _ = endMove(id, places(id))
        }
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            if name.hasPrefix(Self.swapPrefix), let path = try? FolderPath(name) {
                let trashed = String(name.dropFirst(Self.swapPrefix.count))
                // Where a copy of it is in the trash already, both are kept.
                let isThere =
                    Self.isTrashName(trashed) && system.rename(name, in: parts, to: trashed, in: trash)
                if !isThere { _ = system.rename(name, in: parts, to: Self.trashName(path), in: trash) }
            } else if !name.hasPrefix(Self.fetchPrefix) {
                system.removeFile(name, in: parts)
            }
        }
    }
}
