internal import Cryptography
internal import Foundation

/// The records of synced folders in the store of a vault.
///
/// Each call enters the vault once. A call that writes does so in one transaction, the items with the state of the
/// folder.
struct FolderRecords: Sendable {
    let owned: OwnedItems

    /// Finds the folder of a path or a marker.
    /// - Returns: Its id, and true when its marker is missing.
    func openFolder(at root: String, marker: ItemID?) async throws(VaultError) -> (id: ItemID, isMarkerMissing: Bool) {
        try await owned.perform { store, items in
            try items.checkOpen()
            if let marker {
                try store.folders.setFolder(marker, at: root)
                return (marker, false)
            }
            if let known = try store.folders.folder(at: root) { return (known, true) }
            return (.random(), false)
        }
    }

    /// Returns true when this was the last path of a synced folder.
    func hasFolder(at root: String) async throws(VaultError) -> Bool {
        try await owned.perform { store, _ in try store.folders.folder(at: root) != nil }
    }

    /// Returns the last path of a folder; nil for one that was never synced.
    func place(ofFolder id: ItemID) async throws(VaultError) -> String? {
        try await owned.perform { store, items in
            try items.checkOpen()
            return try store.folders.root(ofFolder: id)
        }
    }

    /// Stores the path and the collection of a folder. Writes nothing when the store has them.
    func noteFolder(_ id: ItemID, _ collection: String, at root: String) async throws(VaultError) {
        let owner = owned.owner
        try await owned.perform { store, _ in
            if try store.folders.isRoot(root, ofFolder: id), try store.folders.collection(ofFolder: id) == collection,
                try store.folders.owner(ofFolder: id) == owner
            {
                return
            }
            try store.transaction {
                try store.folders.setFolder(id, at: root)
                try store.folders.setCollection(collection, of: owner, ofFolder: id)
            }
        }
    }

    /// Returns the name of the account in markers: the first half of a SHA-256, which does not reveal the account.
    func folderAccount() async throws(VaultError) -> ItemID {
        try await owned.perform { _, items in
            let digest = SHA256.hash(try items.folderOwner).bytes
            return ItemID(bytes: digest.prefix(16)) ?? .random()
        }
    }

    /// Returns the path of another folder that syncs a collection of the same owner; nil when the folder is known, or
    /// there is no other. A path that another entry uses now does not count. A missing folder counts, because its disk
    /// may be removed.
    func otherFolder(
        than id: ItemID?, at root: String, _ collection: String, _ system: any FolderSystem
    ) async throws(VaultError) -> String? {
        if let id, try await place(ofFolder: id) != nil { return nil }
        if try await hasFolder(at: root) { return nil }
        let owner = owned.owner
        return try await owned.perform { store, _ in
            for (other, place) in try store.folders.all() where !place.utf8.elementsEqual(root.utf8) {
                if try store.folders.owner(ofFolder: other) != owner { continue }
                let known = try store.folders.collection(ofFolder: other)
                if let known, known != collection { continue }
                if known == nil, try !Self.hasFiles(ofFolder: other, in: collection, store) { continue }
                guard let folder = system.openRoot(place) else { return place }
                if FolderMarkerFile.marker(in: folder, system)?.id == other { return place }
            }
            return nil
        }
    }

    /// Returns true when the folder has files of a collection, for folders without a recorded collection.
    private static func hasFiles(ofFolder id: ItemID, in collection: String, _ store: Store) throws -> Bool {
        let own = try store.stamps(collection)
        return try store.folders.knownFiles(in: id).keys.contains { own[$0] != nil }
    }

    /// Returns the collection of a folder's items; nil when there are none, or some are in this collection.
    func otherCollection(ofFolder id: ItemID, than collection: String) async throws(VaultError) -> String? {
        try await owned.perform { store, _ in
            let known = try store.folders.knownFiles(in: id).keys
            let own = try store.stamps(collection)
            if known.contains(where: { own[$0] != nil }) { return nil }
            for item in known.sorted() {
                if let other = try store.current(item)?.collection { return other }
            }
            return nil
        }
    }

    /// Returns true when this account may write the items.
    func canWrite() async throws(VaultError) -> Bool { try await owned.perform { _, items in try items.canWrite } }

    func storeID() async throws(VaultError) -> ItemID { try await owned.perform { store, _ in try store.storeID() } }

    func generation(ofFolder id: ItemID) async throws(VaultError) -> FolderGeneration {
        try await owned.perform { store, _ in try store.folders.generation(ofFolder: id) }
    }

    func setGeneration(_ generation: Int64, ofFolder id: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in try store.folders.setGeneration(generation, ofFolder: id) }
    }

    // MARK: Deletions

    func noteHeld(_ held: HeldDeletions, inFolder id: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in try store.folders.setHeld(held, inFolder: id) }
    }

    /// Returns the initial state of the deletion guard for a round. In an approved direction, the deletions of the last
    /// hour are removed.
    func deletions(
        inFolder id: ItemID, of total: Int, agreeing: Set<DeletionDirection>
    ) async throws(VaultError) -> [DeletionDirection: FolderDeletionGuard.Direction] {
        let now = owned.vault.settings.now()
        return try await owned.perform { store, _ in
            try store.transaction {
                let held = try store.folders.held(inFolder: id)
                var directions: [DeletionDirection: FolderDeletionGuard.Direction] = [:]
                for direction in DeletionDirection.allCases {
                    if agreeing.contains(direction) { try store.forgetDeletions(.folder(id, direction)) }
                    let count = direction == .here ? held.here : held.there
                    directions[direction] = FolderDeletionGuard.Direction(
                        isAgreed: agreeing.contains(direction),
                        recent: try store.recentLoss(.folder(id, direction), to: total, at: now),
                        isHolding: count > 0)
                }
                return directions
            }
        }
    }

    /// Records deletions of files that are about to be carried out.
    /// - Parameter total: The number of files before them.
    func noteDeletions(
        _ directions: Set<DeletionDirection>, from total: Int, inFolder id: ItemID
    ) async throws(VaultError) {
        if directions.isEmpty { return }
        let now = owned.vault.settings.now()
        try await owned.perform { store, _ in
            try store.transaction {
                for direction in directions {
                    try store.noteDeletions(.folder(id, direction), from: total, at: now)
                }
            }
        }
    }

    // MARK: Known files

    func fileHashes(in folder: ItemID) async throws(VaultError) -> [FolderPath: FolderTree.KnownHash] {
        try await owned.perform { store, _ in try store.folders.fileHashes(in: folder) }
    }

    /// Returns the stored digests of the files at some paths, and below them.
    func fileHashes(
        at paths: some Sequence<FolderPath> & Sendable, in folder: ItemID
    ) async throws(VaultError) -> [FolderPath: FolderTree.KnownHash] {
        try await owned.perform { store, _ in
            var hashes: [FolderPath: FolderTree.KnownHash] = [:]
            for path in paths { hashes.merge(try store.folders.fileHashes(at: path, in: folder)) { _, last in last } }
            return hashes
        }
    }

    func setFileHashes(
        _ hashes: [FolderPath: FolderTree.KnownHash], after known: [FolderPath: FolderTree.KnownHash], in folder: ItemID
    ) async throws(VaultError) {
        if hashes == known { return }
        try await owned.perform { store, _ in
            try store.transaction { try store.folders.setFileHashes(hashes, after: known, in: folder) }
        }
    }

    // MARK: Writing

    func setKnownFile(_ id: ItemID, _ file: KnownFile?, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in
            try store.transaction { try store.folders.setKnownFile(id, file, in: folder) }
        }
    }

    /// Stores the states of several files, or removes them with nil.
    func setKnownFiles(_ files: [ItemID: KnownFile?], in folder: ItemID) async throws(VaultError) {
        if files.isEmpty { return }
        try await owned.perform { store, _ in
            try store.transaction {
                for (id, file) in files { try store.folders.setKnownFile(id, file, in: folder) }
            }
        }
    }

    func setKnownFolder(_ id: ItemID, _ known: KnownFolder?, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in try store.transaction { try store.setKnownFolder(id, known, in: folder) }
        }
    }

    /// Stores the states of several folders, or removes them with nil.
    func setKnownFolders(_ folders: [ItemID: KnownFolder?], in folder: ItemID) async throws(VaultError) {
        if folders.isEmpty { return }
        try await owned.perform { store, _ in
            try store.transaction { for (id, known) in folders { try store.setKnownFolder(id, known, in: folder) } }
        }
    }

    // MARK: Writing items

    /// Writes a file's item and its new state.
    /// - Parameters:
    ///   - body: Nil for the present one.
    ///   - seen: The version that it replaces; nil when there was none.
    ///   - known: Nil when nothing in the folder has changed.
    /// - Returns: True when it was written. False when its version is not `seen`.
    func putFile(
        _ id: ItemID, _ path: FolderPath, _ body: SecureBytes?, over seen: ItemStamp?, _ collection: String,
        known: KnownFile?, in folder: ItemID
    ) async throws(VaultError) -> Bool {
        try await owned.perform { store, items in
            try store.transaction {
                guard try store.stamp(id) == seen else { return false }
                guard let body = try body ?? items.item(id)?.body else { return false }
                try items.putUnbounded(PlainItem(title: path.text, body: body), id, in: collection)
                if var known {
                    known.stamp = known.stamp == nil ? nil : try store.stamp(id)
                    try store.folders.setKnownFile(id, known, in: folder)
                }
                if let begun = try store.folders.upload(path, in: folder) {
                    if Attachment(body)?.id != begun { try store.abandonDraft(begun) }
                    try store.folders.setUpload(path, nil, in: folder)
                }
                return true
            }
        }
    }

    /// Deletes a file's item and its state.
    func deleteFile(_ id: ItemID, _ seen: ItemStamp, in folder: ItemID) async throws(VaultError) -> Bool {
        try await owned.perform { store, items in
            try store.transaction {
                guard try store.stamp(id) == seen else { return false }
                try items.delete(id)
                try store.folders.setKnownFile(id, nil, in: folder)
                return true
            }
        }
    }

    /// Creates the item of a folder.
    func putFolder(_ path: FolderPath, _ collection: String, in folder: ItemID) async throws(VaultError) {
        let id = owned.vault.settings.newID()
        let item = PlainItem(title: path.folderTitle, body: SecureBytes(copying: [UInt8]()))
        try await owned.perform { store, items in
            try store.transaction {
                try items.putUnbounded(item, id, in: collection)
                try store.setKnownFolder(id, KnownFolder(path: path, stamp: try store.stamp(id)), in: folder)
            }
        }
    }

    /// Deletes the item of a folder.
    /// - Returns: False when its version is not `seen`.
    func deleteFolder(_ id: ItemID, _ seen: ItemStamp, in folder: ItemID) async throws(VaultError) -> Bool {
        try await owned.perform { store, items in
            try store.transaction {
                guard try store.stamp(id) == seen else { return false }
                try items.delete(id)
                try store.setKnownFolder(id, nil, in: folder)
                return true
            }
        }
    }

    // MARK: Files that are being sent

    /// Returns the draft for the replacement of this version of an item; nil when it is not an attachment.
    func draft(over id: ItemID, _ seen: ItemStamp) async throws(VaultError) -> AttachmentDraft? {
        try await owned.perform { store, items in
            guard try store.stamp(id) == seen, let known = try items.item(id).flatMap({ Attachment($0.body) }) else {
                return nil
            }
            let replaced = try store.item(id)?.content.body.bytes.count
            return AttachmentDraft(
                known.id, before: .init(named: Set(known.chunks), manifestByteCount: replaced.map(Int64.init)))
        }
    }

    // MARK: Files that are being sent

    /// Returns the attachment under which a new file is sent. It is the same until its item exists.
    func beginUpload(_ path: FolderPath, in folder: ItemID) async throws(VaultError) -> ItemID {
        try await owned.perform { store, _ in
            try store.transaction {
                if let begun = try store.folders.upload(path, in: folder) { return begun }
                let id = ItemID.random()
                try store.folders.setUpload(path, id, in: folder)
                return id
            }
        }
    }

    /// Records that a file's new content is sent under its attachment.
    func beginUpload(_ path: FolderPath, of attachment: ItemID, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in
            try store.transaction {
                let begun = try store.folders.upload(path, in: folder)
                if begun == attachment { return }
                if let begun { try store.abandonDraft(begun) }
                try store.folders.setUpload(path, attachment, in: folder)
            }
        }
    }

    func uploads(in folder: ItemID) async throws(VaultError) -> [FolderPath: ItemID] {
        try await owned.perform { store, _ in try store.folders.uploads(in: folder) }
    }

    /// Abandons an upload. Without a server the sent chunks are taken back later.
    func abandonUpload(_ path: FolderPath, _ attachment: ItemID, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in
            try store.transaction {
                try store.folders.setUpload(path, nil, in: folder)
                try store.abandonDraft(attachment)
            }
        }
        do throws(VaultError) { try await owned.abandonAttachment(attachment) } catch .unavailable {}
    }

    // MARK: Trash and warnings

    func trashedFiles(in folder: ItemID) async throws(VaultError) -> [String: TrashedFile] {
        try await owned.perform { store, _ in try store.trashedFiles(in: folder) }
    }

    func trashedFile(_ name: String, in folder: ItemID) async throws(VaultError) -> TrashedFile? {
        try await owned.perform { store, _ in try store.trashedFile(name, in: folder) }
    }

    func forgetTrashed(_ name: String, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in try store.transaction { try store.setTrashed(name, nil, in: folder) } }
    }

    func noteTrashed(_ name: String, _ file: TrashedFile, in folder: ItemID) async throws(VaultError) {
        try await owned.perform { store, _ in try store.transaction { try store.setTrashed(name, file, in: folder) } }
    }

    /// Stores the differences of a folder's trash.
    func setTrashed(
        _ files: [String: TrashedFile], after known: [String: TrashedFile], in folder: ItemID
    ) async throws(VaultError) {
        if files == known { return }
        try await owned.perform { store, _ in
            try store.transaction {
                for name in known.keys where files[name] == nil { try store.setTrashed(name, nil, in: folder) }
                for (name, file) in files where known[name] != file { try store.setTrashed(name, file, in: folder) }
            }
        }
    }

    /// Marks the warnings that an earlier round has reported, and stores the others.
    /// - Parameter isWhole: True when the round has examined everything: then warnings that it does not report are
    ///   removed.
    func note(
        _ warnings: [FolderWarning], inFolder id: ItemID, isWhole: Bool
    ) async throws(VaultError) -> [FolderWarning] {
        try await owned.perform { store, _ in
            let before = try store.warned(in: id)
            let lasting = Set(warnings.filter(\.isLasting).map(\.name))
            if !isWhole && lasting.isSubset(of: before) && lasting.isEmpty { return warnings }
            try store.setWarned(isWhole ? lasting : before.union(lasting), in: id)
            return warnings.map { warning in
                var warning = warning
                warning.isRepeated = warning.isLasting && before.contains(warning.name)
                return warning
            }
        }
    }
}
