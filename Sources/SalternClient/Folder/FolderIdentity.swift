internal import Foundation

/// Identifies the folder by its marker and by its last path.
extension FolderSync {
    /// Rejects a folder that must not be synced, before anything is written in it.
    /// - Returns: The marker that the folder has now.
    func refuseWrongPlace() async throws -> FolderMarker? {
        guard CollectionName.isValid(settings.collection) else {
            throw FolderError.vault(.invalidCollection(settings.collection))
        }
        // The store would be sent, and replaced by that of another device.
        if FolderPlace.overlap(root, vault.settings.folder.path) { throw FolderError.holdsStore }
        if let outer = FolderPlace.outer(of: root, system) { throw FolderError.nested(in: outer) }
        let folder = system.openRoot(root)
        let known = folder.flatMap { FolderMarkerFile.marker(in: $0, system) }
        try await refuse(known, isFolder: folder != nil)
        return known
    }

    /// Rejects a folder that must not be synced because of its marker.
    private func refuse(_ known: FolderMarker?, isFolder: Bool = true) async throws {
        // Before other comparisons of the marker, because another account has no data of the folder.
        if let other = known?.account, try await other != records.folderAccount() { throw FolderError.otherAccount }
        // A path without a folder is mistyped rather than a second one.
        if !settings.allowsSecondFolder, isFolder,
            let other = try await records.otherFolder(than: known?.id, at: root, settings.collection, system)
        {
            throw FolderError.secondFolder(beside: other)
        }
        guard let marker = known else { return }
        // Two folders with one identity would undo each other's changes.
        if let other = try await records.place(ofFolder: marker.id), !other.utf8.elementsEqual(root.utf8),
            FolderPlace.isCopy(root, of: other, marker: marker, system)
        {
            throw FolderError.copy(of: other)
        }
        // The stored states are of items of that collection, and useless for another one.
        var other = marker.collection
        if other == nil {
            other = try await records.otherCollection(ofFolder: marker.id, than: settings.collection)
        }
        if let other, other != settings.collection { throw FolderError.otherCollection(other) }
        if try await isOutdated(marker), !allowsDeletions { throw FolderError.outdated }
    }

    /// Returns true when the folder has lost its marker, and the user has not approved a new start.
    func isMarkerMissing() async throws -> Bool {
        guard !allowsDeletions, let folder = system.openRoot(root), FolderMarkerFile.marker(in: folder, system) == nil
        else {
            return false
        }
        return try await records.hasFolder(at: root)
    }

    /// Returns true when the folder is in the state before some of its rounds.
    private func isOutdated(_ marker: FolderMarker) async throws -> Bool {
        let known = try await records.generation(ofFolder: marker.id)
        if known.number == 0 { return false }
        let line = known.names.compactMap { marker.lines[$0] }.max()
        // A store of an earlier version has no line yet.
        return (line ?? (known.hasLine ? -1 : marker.generation)) < known.number
    }

    /// Identifies the folder, without a change in it.
    /// - Parameter checked: The marker at the time of ``refuseWrongPlace()``.
    /// - Returns: The marker that the folder has; nil when a known folder has lost its marker, and the user has not
    ///   approved a new start.
    func recognize(
        _ tree: FolderTree, _ checked: FolderMarker?, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool, marker: FolderMarker?)? {
        let found = tree.marker.read()
        // Another process may have marked the folder in between, possibly with another account.
        if found != checked { try await refuse(found) }
        var marker = found
        var isAnew = false
        if let old = marker, try await isOutdated(old) {
            marker = FolderMarker(id: .random())
            isAnew = true
        }
        let opened = try await records.openFolder(at: root, marker: marker?.id)
        var id = opened.id
        if opened.isMarkerMissing {
            guard allowsDeletions else {
                report.warn(.markerMissing, root)
                return nil
            }
            // Files that are missing in a replaced folder were not deleted.
            id = .random()
            isAnew = true
        }
        return (id, isAnew, found)
    }

    /// Identifies the folder, and marks a new one.
    /// - Parameter checked: The marker at the time of ``refuseWrongPlace()``.
    func identify(
        _ tree: FolderTree, _ checked: FolderMarker?, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        let account = try await records.folderAccount()
        for _ in 0..<Self.markerAttempts {
            guard let (id, isAnew, before) = try await recognize(tree, checked, &report) else { return nil }
            let marker = FolderMarker(id: id, collection: settings.collection, account: account)
            switch before?.id == id ? .done : tree.marker.mark({ $0 == before ? marker : nil }) {
            case .done:
                try await records.noteFolder(id, settings.collection, at: root)
                return (id, isAnew)
            case .failed: throw FolderError.unusable
            case .changed: try await Task.sleep(for: Self.markerPause)
            }
        }
        throw FolderError.unusable
    }

    /// The number of attempts to change a marker that another process is changing.
    private static let markerAttempts = 50
    private static let markerPause = Duration.milliseconds(20)

    /// Records the progress in the folder, and then in the store. If the process ends in between, the marker is the
    /// later one.
    /// - Throws: When another process has marked the folder as another one: nothing more may be done in it.
    func advance(_ round: Round, _ report: inout FolderReport) async throws {
        let known = try await records.generation(ofFolder: round.folder).number
        let store = try await records.storeID()
        let account = try await records.folderAccount()
        for _ in 0..<Self.markerAttempts {
            var next: Int64 = 0
            let change = round.tree.marker.mark { old in
                if let old, old.id != round.folder { return nil }
                var marker = old ?? FolderMarker(id: round.folder)
                next = max(marker.lines[store] ?? marker.generation, known) + 1
                marker.collection = settings.collection
                marker.account = account
                marker.advance(store, to: next)
                return marker
            }
            if change == .done { return try await records.setGeneration(next, ofFolder: round.folder) }
            if change == .failed { break }
            if let other = round.tree.marker.read(), other.id != round.folder {
                try await refuse(other)
                throw FolderError.unusable
            }
            try await Task.sleep(for: Self.markerPause)
        }
        // Files are sent even if a full disk prevents it.
        report.warn(.failed, FolderMarkerFile.path, system.takeFailure())
    }
}

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
            system.openRoot(place).flatMap { FolderMarkerFile.marker(in: $0, system) } != nil
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
        return FolderMarkerFile.marker(in: folder, system)?.id == marker.id
    }
}
