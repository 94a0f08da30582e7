internal import Foundation

/// Which folder it is: by its marker, and by the place where it was last.
extension FolderSync {
    /// Before anything is written in the folder.
    func refuseWrongPlace() async throws {
        guard CollectionName.isValid(settings.collection) else {
            throw FolderError.vault(.invalidCollection(settings.collection))
        }
        // The store would be sent, and written over by that of another device.
        if FolderPlace.overlap(root, vault.settings.folder.path) { throw FolderError.holdsStore }
        if let outer = FolderPlace.outer(of: root, system) { throw FolderError.nested(in: outer) }
        let known = system.openRoot(root).flatMap { FolderTree.marker(in: $0, system) }
        // Before all that a marker is compared with: another account knows nothing of the folder.
        if let other = known?.account, try await other != vault.folderAccount() { throw FolderError.otherAccount }
        if !settings.allowsSecondFolder,
            let other = try await vault.otherFolder(than: known?.id, at: root, settings.collection, system)
        {
            throw FolderError.secondFolder(beside: other)
        }
        guard let marker = known else { return }
        // Of two folders that pass for one each would undo what the other has.
        if let other = try await vault.place(ofFolder: marker.id), !other.utf8.elementsEqual(root.utf8),
            FolderPlace.isCopy(root, of: other, marker: marker, system)
        {
            throw FolderError.copy(of: other)
        }
        // What is known of its files is about items of that collection: in another one all would begin anew.
        var other = marker.collection
        if other == nil {
            other = try await vault.otherCollection(ofFolder: marker.id, than: settings.collection)
        }
        if let other, other != settings.collection { throw FolderError.otherCollection(other) }
        if try await isOutdated(marker), !allowsDeletions { throw FolderError.outdated }
    }

    /// Whether the folder was here and has lost its marker, and a person has not agreed to begin again.
    func isMarkerMissing() async throws -> Bool {
        guard !allowsDeletions, let folder = system.openRoot(root), FolderTree.marker(in: folder, system) == nil else {
            return false
        }
        return try await vault.hasFolder(at: root)
    }

    /// Whether the folder is as it was before others of its rounds.
    private func isOutdated(_ marker: FolderMarker) async throws -> Bool {
        let known = try await vault.generation(ofFolder: marker.id)
        if known.number == 0 { return false }
        let line = known.names.compactMap { marker.lines[$0] }.max()
        // A store that an earlier version has used has no line yet.
        return (line ?? (known.hasLine ? -1 : marker.generation)) < known.number
    }

    /// Finds out which folder it is, and changes nothing in it.
    /// - Returns: Nil when a folder that was here has lost its marker, and nobody has agreed to begin anew.
    func recognize(
        _ tree: FolderTree, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        var marker = tree.marker()
        var isAnew = false
        if let old = marker, try await isOutdated(old) {
            marker = FolderMarker(id: .random())
            isAnew = true
        }
        let opened = try await vault.openFolder(at: root, marker: marker?.id)
        var id = opened.id
        if opened.isMarkerMissing {
            guard allowsDeletions else {
                report.warn(.markerMissing, root)
                return nil
            }
            // What is missing in a folder that is not the one that it was, nobody has deleted.
            id = .random()
            isAnew = true
        }
        return (id, isAnew)
    }

    /// The same, and marks a folder that is new.
    func identify(
        _ tree: FolderTree, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        guard let (id, isAnew) = try await recognize(tree, &report) else { return nil }
        let before = tree.marker()
        if before?.id != id {
            let marker = FolderMarker(
                id: id, collection: settings.collection, account: try await vault.folderAccount())
            let isMade = before == nil && tree.claim(marker)
            if !isMade, let other = tree.marker(), before == nil {
                // Another process was faster: it may be one of another account.
                try await refuseWrongPlace()
                try await vault.noteFolder(other.id, settings.collection, at: root)
                return (other.id, false)
            }
            guard isMade || tree.setMarker(marker) else { throw FolderError.unusable }
        }
        try await vault.noteFolder(id, settings.collection, at: root)
        return (id, isAnew)
    }

    /// Says in the folder, and then in the store, that it goes on: whoever is killed between the two has the later marker.
    func advance(_ round: Round, _ report: inout FolderReport) async throws {
        let known = try await vault.generation(ofFolder: round.folder).number
        let store = try await vault.storeID()
        let old = round.tree.marker()
        var marker =
            old?.id == round.folder ? old ?? FolderMarker(id: round.folder) : FolderMarker(id: round.folder)
        let next = max(marker.lines[store] ?? marker.generation, known) + 1
        marker.collection = settings.collection
        marker.account = try await vault.folderAccount()
        marker.advance(store, to: next)
        // What a full disk has no room for is no reason to send nothing.
        guard round.tree.setMarker(marker) else {
            return report.warn(.failed, FolderTree.markerPath, system.takeFailure())
        }
        try await vault.setGeneration(next, ofFolder: round.folder)
    }
}
