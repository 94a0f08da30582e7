internal import Cryptography
internal import Foundation

/// A file of the vault, as it is written.
struct FileVersion: Sendable {
    var attachment: Attachment
    var content: FileContent
    var modified: Int64?

    private static let modifiedName = "modified"
    private static let executableName = "executable"

    static func properties(isExecutable: Bool, modified: Int64) -> [String: String] {
        [modifiedName: String(modified), executableName: isExecutable ? "1" : "0"]
    }

    /// Any item of the collection is a file; one that is no attachment has its body as content.
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

/// The vault's half of a folder. Each function that writes does so in one transaction with what is known of the folder.
extension Vault {
    /// Finds the folder again that a place or its marker names.
    /// - Returns: Which it is, and whether its marker is missing.
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

    /// Whether a folder was in sync at this place last.
    func hasFolder(at root: String) throws(VaultError) -> Bool {
        try stored { try store.folder(at: root) } != nil
    }

    /// Where a folder was last; nil for one that was never here.
    func place(ofFolder id: ItemID) throws(VaultError) -> String? {
        _ = try open
        return try stored { try store.root(ofFolder: id) }
    }

    /// Stores the place and the collection of a folder. Writes nothing when the store has them.
    func noteFolder(_ id: ItemID, _ collection: String, at root: String) throws(VaultError) {
        try stored {
            if try store.isRoot(root, ofFolder: id), try store.collection(ofFolder: id) == collection { return }
            try store.transaction {
                try store.setFolder(id, at: root)
                try store.setCollection(collection, ofFolder: id)
            }
        }
    }

    /// The name of the account in markers, which says nothing about the account: the first half of a SHA-256.
    func folderAccount() throws(VaultError) -> ItemID {
        let digest = SHA256.hash(Array("saltern-folder-account".utf8) + (try open).account.bytes).bytes
        return ItemID(bytes: digest.prefix(16)) ?? .random()
    }

    /// Returns where another folder is that is in sync with a collection; nil when the folder is known here, or there is no
    /// other. One in whose place something else is by now does not count; one that is not there may be on a disk that is away.
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

    /// For folders of which an earlier version has noted no collection.
    private func hasFiles(ofFolder id: ItemID, in collection: String) throws(VaultError) -> Bool {
        try stored {
            let own = try store.stamps(collection)
            return try store.knownFiles(in: id).keys.contains { own[$0] != nil }
        }
    }

    func noteHeld(_ held: HeldDeletions, inFolder id: ItemID) throws(VaultError) {
        try stored { try store.setHeld(held, inFolder: id) }
    }

    /// Returns what the guard against many deletions begins a round with. For a direction to which a person has agreed those
    /// of the last hour are forgotten.
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

    /// Notes that deletions of files are about to be carried out.
    /// - Parameter total: How many files there are before.
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

    /// The collection of a folder's files, as far as their items say so; nil when there are none, or some are in this one.
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

    /// What is known and what is in the vault.
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

    /// Notes which of the known items were deleted.
    func noteBuried(_ view: inout FolderView) throws(VaultError) {
        for id in view.known.keys where view.remote[id] == nil && !view.ignored.contains(id) {
            if try stored({ try store.isBuried(id) }) { view.buried.insert(id) }
        }
        for id in view.knownFolders.keys where view.remoteFolders[id] == nil && !view.ignored.contains(id) {
            if try stored({ try store.isBuried(id) }) { view.buried.insert(id) }
        }
    }

    /// Adds an item to a view that has what is known of it.
    /// - Returns: Why it is ignored; nil when it is not.
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

    /// Of files that have one name the newest keeps it. The times of others decide nothing, and are not read.
    func noteTimes(_ view: inout FolderView) {
        let sameNames = Dictionary(grouping: view.remote.keys) { view.remote[$0]?.path.text.lowercased() }
        for id in sameNames.values.lazy.filter({ $0.count > 1 }).joined() {
            guard let item = try? item(id) else { continue }
            view.remote[id]?.modified = FileVersion(item.body).modified
        }
    }

    /// What is to be downloaded, if it is still this version.
    func file(_ id: ItemID, _ seen: ItemStamp) throws(VaultError) -> FileVersion? {
        guard try stored({ try store.stamp(id) }) == seen, let item = try item(id) else { return nil }
        return FileVersion(item.body)
    }

    /// For what takes the place of this version of an item; nil when that is no attachment.
    func draft(over id: ItemID, _ seen: ItemStamp) throws(VaultError) -> AttachmentDraft? {
        guard try stored({ try store.stamp(id) }) == seen, let known = (try item(id)).flatMap({ Attachment($0.body) })
        else { return nil }
        let replaced = try stored { try store.item(id) }?.content.body.bytes.count
        return AttachmentDraft(
            known.id, before: .init(named: Set(known.chunks), manifestByteCount: replaced.map(Int64.init)))
    }

    // MARK: Files that are being sent

    /// Under which attachment a new file is sent: the same until its item is there.
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

    /// A file's new content is sent under the attachment that it has.
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

    /// Nobody goes on with a file that was being sent. Without a server what was sent is taken back later.
    func abandonUpload(_ path: FolderPath, _ attachment: ItemID, in folder: ItemID) async throws(VaultError) {
        try stored {
            try store.transaction {
                try store.setUpload(path, nil, in: folder)
                try store.abandonDraft(attachment)
            }
        }
        do throws(VaultError) { try await takeBack(attachment) } catch .unavailable {}
    }

    // MARK: Writing

    func setKnownFile(_ id: ItemID, _ file: KnownFile?, in folder: ItemID) throws(VaultError) {
        try stored { try store.transaction { try store.setKnownFile(id, file, in: folder) } }
    }

    /// Notes what is known of several files, with nil that it is forgotten.
    func setKnownFiles(_ files: [ItemID: KnownFile?], in folder: ItemID) throws(VaultError) {
        if files.isEmpty { return }
        try stored {
            try store.transaction {
                for (id, file) in files { try store.setKnownFile(id, file, in: folder) }
            }
        }
    }

    /// Writes a file's item, with what is known from then on.
    /// - Parameters:
    ///   - body: Nil for the one that it has.
    ///   - seen: The version that it goes over; nil when there was none.
    ///   - known: Nil when nothing about the folder has changed.
    /// - Returns: Whether it was written: not when there is another version than the one that was seen.
    func putFile(
        _ id: ItemID, _ path: FolderPath, _ body: SecureBytes?, over seen: ItemStamp?, _ collection: String,
        known: KnownFile?, in folder: ItemID
    ) throws(VaultError) -> Bool {
        try transaction {
            guard try store.stamp(id) == seen else { return false }
            guard let body = try body ?? item(id)?.body else { return false }
            try putUnbounded(PlainItem(title: path.text, body: body), id, in: collection)
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

    /// Deletes a file's item, with what is known of it.
    func deleteFile(_ id: ItemID, _ seen: ItemStamp, in folder: ItemID) throws(VaultError) -> Bool {
        try transaction {
            guard try store.stamp(id) == seen else { return false }
            try delete(id)
            try store.setKnownFile(id, nil, in: folder)
            return true
        }
    }
}
