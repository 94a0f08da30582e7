internal import Cryptography
internal import Foundation

/// A version of the vault's file, for writing.
struct FileVersion: Sendable {
    var attachment: Attachment
    var content: FileContent
    var modified: Int64?

    private static let modifiedName = "modified"
    private static let executableName = "executable"

    static func properties(isExecutable: Bool, modified: Int64) -> [String: String] {
        [modifiedName: String(modified), executableName: isExecutable ? "1" : "0"]
    }

    /// Creates a version from an item's body. Any item of the collection is a file. A body that is not an attachment is
    /// the content.
    init(_ body: SecureBytes) {
        attachment =
            Attachment(body)
            ?? Attachment(
                id: .random(), byteCount: Int64(body.count), digest: SHA256.hash(body).bytes, properties: [:],
                chunkByteCount: Attachment.chunkByteCount, chunks: [], inline: body)
        content = FileContent(
            digest: attachment.digest, byteCount: attachment.byteCount,
            isExecutable: attachment.properties[Self.executableName] == "1")
        modified = attachment.properties[Self.modifiedName].flatMap { Int64($0) }
    }
}

/// The vault's part of a folder. Each function that writes does so in one transaction with the state of the folder.
extension Vault {
    /// Finds the folder of a path or a marker.
    /// - Returns: Its id, and true when its marker is missing.
    func openFolder(at root: String, marker: ItemID?) throws(VaultError) -> (id: ItemID, isMarkerMissing: Bool) {
        _ = try open
        return try stored {
            if let marker {
                try store.setFolder(marker, at: root)
                return (marker, false)
            }
            if let known = try store.folder(at: root) { return (known, true) }
            return (.random(), false)
        }
    }

    /// Returns true when this was the last path of a synced folder.
    func hasFolder(at root: String) throws(VaultError) -> Bool {
        try stored { try store.folder(at: root) } != nil
    }

    /// Returns the last path of a folder; nil for one that was never synced.
    func place(ofFolder id: ItemID) throws(VaultError) -> String? {
        _ = try open
        return try stored { try store.root(ofFolder: id) }
    }

    /// Stores the path and the collection of a folder. Writes nothing when the store has them.
    func noteFolder(_ id: ItemID, _ collection: String, at root: String) throws(VaultError) {
        try stored {
            if try store.isRoot(root, ofFolder: id), try store.collection(ofFolder: id) == collection { return }
            try store.transaction {
                try store.setFolder(id, at: root)
                try store.setCollection(collection, ofFolder: id)
            }
        }
    }

    /// Returns the name of the account in markers: the first half of a SHA-256, which does not reveal the account.
    func folderAccount() throws(VaultError) -> ItemID {
        let digest = SHA256.hash(Array("saltern-folder-account".utf8) + (try open).account.bytes).bytes
        return ItemID(bytes: digest.prefix(16)) ?? .random()
    }

    /// Returns the path of another folder that syncs a collection; nil when the folder is known, or there is no other.
    /// A path that another entry uses now does not count. A missing folder counts, because its disk may be removed.
    func otherFolder(
        than id: ItemID?, at root: String, _ collection: String, _ system: any FolderSystem
    ) throws(VaultError) -> String? {
        if let id, try place(ofFolder: id) != nil { return nil }
        if try hasFolder(at: root) { return nil }
        for (other, place) in try stored({ try store.folders() }) where !place.utf8.elementsEqual(root.utf8) {
            let known = try stored { try store.collection(ofFolder: other) }
            if let known, known != collection { continue }
            if known == nil, try !hasFiles(ofFolder: other, in: collection) { continue }
            guard let folder = system.openRoot(place) else { return place }
            if FolderTree.marker(in: folder, system)?.id == other { return place }
        }
        return nil
    }

    /// Returns true when the folder has files of a collection, for folders without a recorded collection.
    private func hasFiles(ofFolder id: ItemID, in collection: String) throws(VaultError) -> Bool {
        try stored {
            let own = try store.stamps(collection)
            return try store.knownFiles(in: id).keys.contains { own[$0] != nil }
        }
    }

    func noteHeld(_ held: HeldDeletions, inFolder id: ItemID) throws(VaultError) {
        try stored { try store.setHeld(held, inFolder: id) }
    }

    /// Returns the initial state of the deletion guard for a round. In an approved direction, the deletions of the last
    /// hour are removed.
    func deletions(
        inFolder id: ItemID, of total: Int, agreeing: Set<DeletionDirection>
    ) throws(VaultError) -> [DeletionDirection: FolderDeletionGuard.Direction] {
        let now = settings.now()
        return try stored {
            try store.transaction {
                let held = try store.held(inFolder: id)
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
    ) throws(VaultError) {
        if directions.isEmpty { return }
        let now = settings.now()
        try stored {
            try store.transaction {
                for direction in directions {
                    try store.noteDeletions(.folder(id, direction), from: total, at: now)
                }
            }
        }
    }

    /// Returns the collection of a folder's items; nil when there are none, or some are in this collection.
    func otherCollection(ofFolder id: ItemID, than collection: String) throws(VaultError) -> String? {
        try stored {
            let known = try store.knownFiles(in: id).keys
            let own = try store.stamps(collection)
            if known.contains(where: { own[$0] != nil }) { return nil }
            for item in known.sorted() {
                if let other = try store.current(item)?.collection { return other }
            }
            return nil
        }
    }

    func storeID() throws(VaultError) -> ItemID { try stored { try store.storeID() } }

    func generation(ofFolder id: ItemID) throws(VaultError) -> FolderGeneration {
        try stored { try store.generation(ofFolder: id) }
    }

    func setGeneration(_ generation: Int64, ofFolder id: ItemID) throws(VaultError) {
        try stored { try store.setGeneration(generation, ofFolder: id) }
    }

    func fileHashes(in folder: ItemID) throws(VaultError) -> [FolderPath: FolderTree.KnownHash] {
        try stored { try store.fileHashes(in: folder) }
    }

    func setFileHashes(
        _ hashes: [FolderPath: FolderTree.KnownHash], after known: [FolderPath: FolderTree.KnownHash], in folder: ItemID
    ) throws(VaultError) {
        if hashes == known { return }
        try stored { try store.transaction { try store.setFileHashes(hashes, after: known, in: folder) } }
    }

    /// Returns a view with the known states and the content of the vault.
    func folderView(
        _ folder: ItemID, _ collection: String
    ) throws(VaultError) -> (view: FolderView, warnings: [FolderWarning]) {
        _ = try open
        var view = FolderView()
        var warnings: [FolderWarning] = []
        view.known = try stored { try store.knownFiles(in: folder) }
        view.knownFolders = try stored { try store.knownFolders(in: folder) }
        for (id, stamp) in try stored({ try store.stamps(collection) }) {
            if let warning = try addRemote(id, stamp, to: &view) { warnings.append(warning) }
        }
        try noteBuried(&view)
        noteTimes(&view)
        return (view, warnings)
    }

    /// Records the known items that were deleted.
    func noteBuried(_ view: inout FolderView) throws(VaultError) {
        for id in view.known.keys where view.remote[id] == nil && !view.ignored.contains(id) {
            if try stored({ try store.isBuried(id) }) { view.buried.insert(id) }
        }
        for id in view.knownFolders.keys where view.remoteFolders[id] == nil && !view.ignored.contains(id) {
            if try stored({ try store.isBuried(id) }) { view.buried.insert(id) }
        }
    }

    /// Adds an item to a view that has its known state.
    /// - Returns: The reason for which it is ignored; nil otherwise.
    func addRemote(
        _ id: ItemID, _ stamp: ItemStamp, to view: inout FolderView
    ) throws(VaultError) -> FolderWarning? {
        if let known = view.known[id], known.stamp == stamp {
            view.remote[id] = RemoteFile(path: known.path, content: known.content, stamp: stamp)
            return nil
        }
        if let known = view.knownFolders[id], known.stamp == stamp {
            view.remoteFolders[id] = RemoteFolder(path: known.path, stamp: stamp)
            return nil
        }
        let found: PlainItem?
        do throws(VaultError) {
            found = try item(id)
        } catch {
            guard case .unreadable = error else { throw error }
            view.ignored.insert(id)
            return FolderWarning(kind: .unreadableItem, path: id.description)
        }
        guard let found else { return nil }
        if found.body.isEmpty, let path = FolderPath(folderTitle: found.title ?? "") {
            view.remoteFolders[id] = RemoteFolder(path: path, stamp: stamp)
            return nil
        }
        guard let path = try? FolderPath(found.title ?? "") else {
            view.ignored.insert(id)
            return FolderWarning(kind: .refusedTitle, path: id.description)
        }
        view.remote[id] = RemoteFile(path: path, content: FileVersion(found.body).content, stamp: stamp)
        return nil
    }

    /// Reads the times of files with equal names, of which the newest keeps its name. Other times are not needed.
    func noteTimes(_ view: inout FolderView) {
        let sameNames = Dictionary(grouping: view.remote.keys) { view.remote[$0]?.path.text.lowercased() }
        for id in sameNames.values.lazy.filter({ $0.count > 1 }).joined() {
            guard let item = try? item(id) else { continue }
            view.remote[id]?.modified = FileVersion(item.body).modified
        }
    }

    /// Returns the file to download, if it still has this version.
    func file(_ id: ItemID, _ seen: ItemStamp) throws(VaultError) -> FileVersion? {
        guard try stored({ try store.stamp(id) }) == seen, let item = try item(id) else { return nil }
        return FileVersion(item.body)
    }

    /// Returns the draft for the replacement of this version of an item; nil when it is not an attachment.
    func draft(over id: ItemID, _ seen: ItemStamp) throws(VaultError) -> AttachmentDraft? {
        guard try stored({ try store.stamp(id) }) == seen, let known = (try item(id)).flatMap({ Attachment($0.body) })
        else { return nil }
        let replaced = try stored { try store.item(id) }?.content.body.bytes.count
        return AttachmentDraft(
            known.id, before: .init(named: Set(known.chunks), manifestByteCount: replaced.map(Int64.init)))
    }

    func confirmedAge() throws(VaultError) -> Int64? { try session.confirmedAge() }

    func room() async throws(VaultError) -> PlanRoom { try await plan.room() }

    func attachmentsLackingChunks() throws(VaultError) -> [Attachment] { try attachments.lackingChunks() }

    func supply(_ attachment: Attachment, from source: AttachmentSource) async throws(VaultError) {
        try await attachments.supply(attachment, from: source)
    }

    // MARK: Files that are being sent

    /// Returns the attachment under which a new file is sent. It is the same until its item exists.
    func beginUpload(_ path: FolderPath, in folder: ItemID) throws(VaultError) -> ItemID {
        try stored {
            try store.transaction {
                if let begun = try store.upload(path, in: folder) { return begun }
                let id = ItemID.random()
                try store.setUpload(path, id, in: folder)
                return id
            }
        }
    }

    /// Records that a file's new content is sent under its attachment.
    func beginUpload(_ path: FolderPath, of attachment: ItemID, in folder: ItemID) throws(VaultError) {
        try stored {
            try store.transaction {
                let begun = try store.upload(path, in: folder)
                if begun == attachment { return }
                if let begun { try store.abandonDraft(begun) }
                try store.setUpload(path, attachment, in: folder)
            }
        }
    }

    func uploads(in folder: ItemID) throws(VaultError) -> [FolderPath: ItemID] {
        try stored { try store.uploads(in: folder) }
    }

    /// Abandons an upload. Without a server the sent chunks are taken back later.
    func abandonUpload(_ path: FolderPath, _ attachment: ItemID, in folder: ItemID) async throws(VaultError) {
        try stored {
            try store.transaction {
                try store.setUpload(path, nil, in: folder)
                try store.abandonDraft(attachment)
            }
        }
        do throws(VaultError) { try await attachments.abandoned.takeBack(attachment) } catch .unavailable {}
    }

    // MARK: Writing

    func setKnownFile(_ id: ItemID, _ file: KnownFile?, in folder: ItemID) throws(VaultError) {
        try stored { try store.transaction { try store.setKnownFile(id, file, in: folder) } }
    }

    /// Stores the states of several files, or removes them with nil.
    func setKnownFiles(_ files: [ItemID: KnownFile?], in folder: ItemID) throws(VaultError) {
        if files.isEmpty { return }
        try stored {
            try store.transaction {
                for (id, file) in files { try store.setKnownFile(id, file, in: folder) }
            }
        }
    }

    /// Writes a file's item and its new state.
    /// - Parameters:
    ///   - body: Nil for the present one.
    ///   - seen: The version that it replaces; nil when there was none.
    ///   - known: Nil when nothing in the folder has changed.
    /// - Returns: True when it was written. False when its version is not `seen`.
    func putFile(
        _ id: ItemID, _ path: FolderPath, _ body: SecureBytes?, over seen: ItemStamp?, _ collection: String,
        known: KnownFile?, in folder: ItemID
    ) throws(VaultError) -> Bool {
        try transaction {
            guard try store.stamp(id) == seen else { return false }
            guard let body = try body ?? item(id)?.body else { return false }
            try items.putUnbounded(PlainItem(title: path.text, body: body), id, in: collection)
            if var known {
                known.stamp = known.stamp == nil ? nil : try store.stamp(id)
                try store.setKnownFile(id, known, in: folder)
            }
            if let begun = try store.upload(path, in: folder) {
                if Attachment(body)?.id != begun { try store.abandonDraft(begun) }
                try store.setUpload(path, nil, in: folder)
            }
            return true
        }
    }

    /// Deletes a file's item and its state.
    func deleteFile(_ id: ItemID, _ seen: ItemStamp, in folder: ItemID) throws(VaultError) -> Bool {
        try transaction {
            guard try store.stamp(id) == seen else { return false }
            try delete(id)
            try store.setKnownFile(id, nil, in: folder)
            return true
        }
    }
}
