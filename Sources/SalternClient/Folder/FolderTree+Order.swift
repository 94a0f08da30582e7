internal import Foundation

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
