internal import Foundation

/// Which folders may be kept in sync: not one that has to do with the store, and no copy of another one.
enum FolderPlace {
    /// What a folder is, however it is named.
    private struct Identity: Hashable {
        var device: dev_t
        var inode: ino_t

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Whether one folder is the other, or in it. One that is not there is in none.
    static func overlap(_ one: String, _ other: String) -> Bool {
        let (first, second) = (wayUp(from: one).map(\.identity), wayUp(from: other).map(\.identity))
        guard let one = first.first, let other = second.first else { return false }
        return first.contains(other) || second.contains(one)
    }

    /// The folder and all that it is in: nothing of it has to be readable.
    private static func wayUp(from path: String) -> [(place: String, identity: Identity)] {
        var found: [(place: String, identity: Identity)] = []
        var place = path
        var status = stat()
        while stat(place, &status) == 0 {
            let identity = Identity(status)
            // The root is in itself.
            if identity == found.last?.identity { break }
            found.append((place, identity))
            place += "/.."
        }
        return found
    }

    /// The nearest folder with a marker that a folder is in.
    static func outer(of path: String, _ system: any FolderSystem) -> String? {
        let outer = wayUp(from: path).dropFirst().first { place, _ in
            system.openRoot(place).flatMap { FolderTree.marker(in: $0, system) } != nil
        }
        return outer.map { URL(filePath: $0.place).standardized.path }
    }

    /// Whether two folders are there and have the same marker.
    /// - Parameter marker: That of `one`.
    static func isCopy(_ one: String, of other: String, marker: FolderMarker, _ system: any FolderSystem) -> Bool {
        guard let here = system.openRoot(one).flatMap(system.status),
            let folder = system.openRoot(other), let there = system.status(folder),
            Identity(here) != Identity(there)
        else { return false }
        return FolderTree.marker(in: folder, system)?.id == marker.id
    }
}
