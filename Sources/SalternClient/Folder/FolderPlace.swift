internal import Foundation

/// Checks that a folder may be synced: it does not overlap with the store, and is not a copy of another one.
enum FolderPlace {
    /// The identity of a folder, independent of its path.
    private struct Identity: Hashable {
        var device: dev_t
        var inode: ino_t

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Returns true when one folder is the other, or in it. Returns false for a missing folder.
    static func overlap(_ one: String, _ other: String) -> Bool {
        let (first, second) = (wayUp(from: one).map(\.identity), wayUp(from: other).map(\.identity))
        guard let one = first.first, let other = second.first else { return false }
        return first.contains(other) || second.contains(one)
    }

    /// Returns the folder and all folders above it, which need not be readable.
    private static func wayUp(from path: String) -> [(place: String, identity: Identity)] {
        var found: [(place: String, identity: Identity)] = []
        var place = path
        var status = stat()
        while stat(place, &status) == 0 {
            let identity = Identity(status)
            // The root is its own parent.
            if identity == found.last?.identity { break }
            found.append((place, identity))
            place += "/.."
        }
        return found
    }

    /// Returns the nearest folder above that has a marker.
    static func outer(of path: String, _ system: any FolderSystem) -> String? {
        let outer = wayUp(from: path).dropFirst().first { place, _ in
            system.openRoot(place).flatMap { FolderTree.marker(in: $0, system) } != nil
        }
        return outer.map { URL(filePath: $0.place).standardized.path }
    }

    /// Returns true when two different folders exist and have the same marker.
    /// - Parameter marker: The marker of `one`.
    static func isCopy(_ one: String, of other: String, marker: FolderMarker, _ system: any FolderSystem) -> Bool {
        guard let here = system.openRoot(one).flatMap(system.status),
            let folder = system.openRoot(other), let there = system.status(folder),
            Identity(here) != Identity(there)
        else { return false }
        return FolderTree.marker(in: folder, system)?.id == marker.id
    }
}
