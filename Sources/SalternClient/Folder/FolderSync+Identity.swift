internal import Foundation

/// Identifies the folder by its marker and by its last path.
extension FolderSync {
    /// Rejects a folder that must not be synced, before anything is written in it.
    func refuseWrongPlace() async throws {
        guard CollectionName.isValid(settings.collection) else {
            throw FolderError.vault(.invalidCollection(settings.collection))
        }
        // The store would be sent, and replaced by that of another device.
        if FolderPlace.overlap(root, vault.settings.folder.path) { throw FolderError.holdsStore }
        if let outer = FolderPlace.outer(of: root, system) { throw FolderError.nested(in: outer) }
        let folder = system.openRoot(root)
        let known = folder.flatMap { FolderTree.marker(in: $0, system) }
        // Before other comparisons of the marker, because another account has no data of the folder.
        if let other = known?.account, try await other != records.folderAccount() { throw FolderError.otherAccount }
        // A path without a folder is mistyped rather than a second one.
        if !settings.allowsSecondFolder, folder != nil,
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
        guard !allowsDeletions, let folder = system.openRoot(root), FolderTree.marker(in: folder, system) == nil else {
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
    /// - Returns: nil when a known folder has lost its marker, and the user has not approved a new start.
    func recognize(
        _ tree: FolderTree, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        var marker = tree.marker()
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
        return (id, isAnew)
    }

    /// Identifies the folder, and marks a new one.
    func identify(
        _ tree: FolderTree, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        guard let (id, isAnew) = try await recognize(tree, &report) else { return nil }
        let before = tree.marker()
        if before?.id != id {
            let marker = FolderMarker(
                id: id, collection: settings.collection, account: try await records.folderAccount())
            let isMade = before == nil && tree.claim(marker)
            if !isMade, let other = tree.marker(), before == nil {
                // Another process has marked it first, possibly with another account.
                try await refuseWrongPlace()
                try await records.noteFolder(other.id, settings.collection, at: root)
                return (other.id, false)
            }
            guard isMade || tree.setMarker(marker) else { throw FolderError.unusable }
        }
        try await records.noteFolder(id, settings.collection, at: root)
        return (id, isAnew)
    }

    /// Records the progress in the folder, and then in the store. If the process ends in between, the marker is the
    /// later one.
    func advance(_ round: Round, _ report: inout FolderReport) async throws {
        let known = try await records.generation(ofFolder: round.folder).number
        let store = try await records.storeID()
        let old = round.tree.marker()
        var marker =
            old?.id == round.folder ? old ?? FolderMarker(id: round.folder) : FolderMarker(id: round.folder)
        let next = max(marker.lines[store] ?? marker.generation, known) + 1
        marker.collection = settings.collection
        marker.account = try await records.folderAccount()
        marker.advance(store, to: next)
        // Files are sent even if a full disk prevents it.
        guard round.tree.setMarker(marker) else {
            return report.warn(.failed, FolderTree.markerPath, system.takeFailure())
        }
        try await records.setGeneration(next, ofFolder: round.folder)
    }
}
