/// The state of synced folders in a store: their paths, the files that were synced, uploads, and hashes.
struct FolderStore {
    private let store: Store
    private var database: StoreTables { store.database }

    init(_ store: Store) { self.store = store }

    // MARK: Folders

    /// Returns the last folder at this path.
    func folder(at root: String) throws -> ItemID? {
        try database.rows("SELECT id FROM folders WHERE root = ?", .text(root)) { try Store.id($0, 0) }.first
    }

    /// Returns the last path of a folder.
    func root(ofFolder id: ItemID) throws -> String? {
        try database.rows("SELECT root FROM folders WHERE id = ?", .blob(id.bytes)) { $0.text(0) }.first ?? nil
    }

    /// Returns true when this was the last path of a folder.
    func isRoot(_ root: String, ofFolder id: ItemID) throws -> Bool {
        try self.root(ofFolder: id)?.utf8.elementsEqual(root.utf8) ?? false
    }

    func setFolder(_ id: ItemID, at root: String) throws {
        // No two folders have the same root.
        if try isRoot(root, ofFolder: id) { return }
        try database.execute("DELETE FROM folders WHERE root = ? AND id <> ?", .text(root), .blob(id.bytes))
        try database.execute(
            "INSERT INTO folders (id, root) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET root = excluded.root",
            .blob(id.bytes), .text(root))
    }

    /// Returns all folders and their last paths.
    func all() throws -> [(id: ItemID, root: String)] {
        try database.rows("SELECT id, root FROM folders ORDER BY root") { (try Store.id($0, 0), $0.text(1) ?? "") }
    }

    /// Returns the collection of a folder; nil when an earlier version has recorded none.
    func collection(ofFolder id: ItemID) throws -> String? {
        try database.rows("SELECT collection FROM folders WHERE id = ?", .blob(id.bytes)) { $0.text(0) }.first ?? nil
    }

    /// Returns the owner of a folder's items.
    func owner(ofFolder id: ItemID) throws -> ItemOwner {
        let vault = try database.rows("SELECT vault FROM folders WHERE id = ?", .blob(id.bytes)) { $0.blob(0) }.first
        return (vault ?? nil).flatMap { SharedVaultID(bytes: $0) }.map { .vault($0) } ?? .account
    }

    func setCollection(_ collection: String, of owner: ItemOwner, ofFolder id: ItemID) throws {
        if try self.collection(ofFolder: id) == collection, try self.owner(ofFolder: id) == owner { return }
        var vault: [UInt8]?
        if case .vault(let id) = owner { vault = id.bytes }
        try database.execute(
            "UPDATE folders SET collection = ?, vault = ? WHERE id = ?", .text(collection), .optional(vault),
            .blob(id.bytes))
    }

    /// Records the number of a folder's deletions that wait for approval.
    func setHeld(_ held: HeldDeletions, inFolder id: ItemID) throws {
        if try self.held(inFolder: id) == held { return }
        try database.execute(
            "UPDATE folders SET held = ?, held_here = ?, held_there = ? WHERE id = ?",
            .integer(Int64(held.here + held.there)), .integer(Int64(held.here)),
            .integer(Int64(held.there)),
            .blob(id.bytes))
    }

    /// Returns the number of a folder's waiting deletions.
    func held(inFolder id: ItemID) throws -> HeldDeletions {
        try database.rows("SELECT held_here, held_there FROM folders WHERE id = ?", .blob(id.bytes)) {
            HeldDeletions(here: Int($0.integer(0) ?? 0), there: Int($0.integer(1) ?? 0))
        }.first ?? HeldDeletions()
    }

    /// Returns the last progress of a folder, and the names of this store whose lines in the marker can have it: see
    /// ``FolderMarker``. Without a line it is the number of a version of the kit that wrote none.
    func generation(ofFolder id: ItemID) throws -> FolderGeneration {
        let known = try database.rows(
            "SELECT generation, has_line FROM folder_generations WHERE folder = ?", .blob(id.bytes)
        ) { ($0.integer(0) ?? 0, $0.integer(1) ?? 0) }.first
        guard let (number, line) = known else { return FolderGeneration() }
        // See `Store.renewIdentity`.
        let names = line == 2 ? try store.formerStoreIDs() : [try store.storeID()]
        return FolderGeneration(number: number, names: names, hasLine: line != 0)
    }

    func setGeneration(_ generation: Int64, ofFolder id: ItemID) throws {
        try database.execute(
            "INSERT OR REPLACE INTO folder_generations (folder, generation, has_line) VALUES (?, ?, 1)",
            .blob(id.bytes), .integer(generation))
    }

    // MARK: Synced states

    private static let knownColumns = "id, path, digest, byte_count, executable, revision, sequence, pending, ignored"

    func knownFiles(in folder: ItemID) throws -> [ItemID: KnownFile] {
        let files = try database.rows(
            "SELECT \(Self.knownColumns) FROM folder_files WHERE folder = ?", .blob(folder.bytes),
            decode: Self.knownFile)
        return Dictionary(files.compactMap(\.self)) { _, last in last }
    }

    private static func knownFile(_ row: SQLiteRow) throws -> (ItemID, KnownFile)? {
        guard let path = try path(row.text(1)) else { return nil }
        guard let digest = row.blob(2), let count = row.integer(3), let executable = row.integer(4) else {
            throw StoreError.damaged
        }
        let stamp = ItemStamp(revision: row.integer(5), sequence: row.integer(6))
        return (
            try Store.id(row, 0),
            KnownFile(
                path: path,
                content: FileContent(digest: digest, byteCount: count, isExecutable: executable != 0),
                stamp: stamp == ItemStamp() ? nil : stamp, isPending: row.integer(7) == 1,
                isIgnored: row.integer(8) == 1)
        )
    }

    /// Decodes the path of a row. Returns nil for a path in a folder `.saltern` of the kit, which earlier versions
    /// synced if it was in an inner folder.
    private static func path(_ text: String?) throws -> FolderPath? {
        guard let text else { throw StoreError.damaged }
        do throws(FolderPath.Refusal) {
            return try FolderPath(text)
        } catch {
            guard error == .reserved else { throw StoreError.damaged }
            return nil
        }
    }

    /// Stores the state of both sides, or removes it with nil.
    func setKnownFile(_ id: ItemID, _ file: KnownFile?, in folder: ItemID) throws {
        try database.execute(
            "DELETE FROM folder_files WHERE folder = ? AND id = ?", .blob(folder.bytes), .blob(id.bytes))
        guard let file else { return }
        try database.execute(
            "DELETE FROM folder_files WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(file.path.text))
        try database.execute(
            """
            INSERT INTO folder_files (folder, id, path, digest, byte_count, executable, revision, sequence, pending, ignored)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, .blob(folder.bytes), .blob(id.bytes), .text(file.path.text), .blob(file.content.digest),
            .integer(file.content.byteCount), .integer(file.content.isExecutable ? 1 : 0),
            .optional(file.stamp?.revision), .optional(file.stamp?.sequence),
            .integer(file.isPending ? 1 : 0), .integer(file.isIgnored ? 1 : 0))
    }

    /// Returns the files at a path, below it, and at the paths of the folders above it.
    func knownFiles(around path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        var ids = try database.rows(
            "SELECT id FROM folder_files WHERE folder = ? AND path > ? AND path < ?", .blob(folder.bytes),
            .text(path.text + "/"), .text(path.text + "0")
        ) { try Store.id($0, 0) }
        for place in [path] + path.folders {
            ids += try database.rows(
                "SELECT id FROM folder_files WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(place.text)
            ) { try Store.id($0, 0) }
        }
        return ids
    }

    func knownFile(_ id: ItemID, in folder: ItemID) throws -> KnownFile? {
        try database.rows(
            "SELECT \(Self.knownColumns) FROM folder_files WHERE folder = ? AND id = ?", .blob(folder.bytes),
            .blob(id.bytes), decode: Self.knownFile
        ).compactMap(\.self).first?.1
    }

    func knownFileCount(in folder: ItemID) throws -> Int {
        Int(
            try database.rows("SELECT count(*) FROM folder_files WHERE folder = ?", .blob(folder.bytes)) {
                $0.integer(0) ?? 0
            }.first ?? 0)
    }

    /// Returns true when a file other than these has the content.
    func isKnown(_ digest: [UInt8], except ids: Set<ItemID>, in folder: ItemID) throws -> Bool {
        try database.rows(
            "SELECT id FROM folder_files WHERE folder = ? AND digest = ?", .blob(folder.bytes), .blob(digest)
        ) { try Store.id($0, 0) }.contains { !ids.contains($0) }
    }

    // MARK: Files that are being sent

    /// Returns the attachments under which files are sent.
    func uploads(in folder: ItemID) throws -> [FolderPath: ItemID] {
        let uploads = try database.rows(
            "SELECT path, attachment FROM folder_uploads WHERE folder = ?", .blob(folder.bytes)
        ) { row -> (FolderPath, ItemID)? in
            guard let path = try Self.path(row.text(0)) else { return nil }
            return (path, try Store.id(row, 1))
        }
        return Dictionary(uploads.compactMap(\.self)) { _, last in last }
    }

    /// Returns the attachment under which a file is sent.
    func upload(_ path: FolderPath, in folder: ItemID) throws -> ItemID? {
        try database.rows(
            "SELECT attachment FROM folder_uploads WHERE folder = ? AND path = ?", .blob(folder.bytes),
            .text(path.text)
        ) { try Store.id($0, 0) }.first
    }

    func setUpload(_ path: FolderPath, _ attachment: ItemID?, in folder: ItemID) throws {
        try database.execute(
            "DELETE FROM folder_uploads WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(path.text))
        guard let attachment else { return }
        try database.execute(
            "INSERT INTO folder_uploads (folder, path, attachment) VALUES (?, ?, ?)", .blob(folder.bytes),
            .text(path.text), .blob(attachment.bytes))
    }

    // MARK: Hashes

    func fileHashes(in folder: ItemID) throws -> [FolderPath: FolderTree.KnownHash] {
        let hashes = try database.rows(
            "SELECT \(Self.hashColumns) FROM folder_hashes WHERE folder = ?", .blob(folder.bytes),
            decode: Self.fileHash)
        return Dictionary(hashes.compactMap(\.self)) { _, last in last }
    }

    private static let hashColumns = "path, inode, byte_count, modified, changed, digest"

    private static func fileHash(_ row: SQLiteRow) throws -> (FolderPath, FolderTree.KnownHash)? {
        guard let path = try path(row.text(0)) else { return nil }
        guard let inode = row.integer(1), let count = row.integer(2), let modified = row.integer(3),
            let changed = row.integer(4), let digest = row.blob(5)
        else { throw StoreError.damaged }
        let signature = FileSignature(
            inode: UInt64(bitPattern: inode), byteCount: count, modified: modified, changed: changed)
        return (path, FolderTree.KnownHash(signature: signature, digest: digest))
    }

    func setFileHashes(
        _ hashes: [FolderPath: FolderTree.KnownHash], after known: [FolderPath: FolderTree.KnownHash], in folder: ItemID
    ) throws {
        for path in known.keys where hashes[path] == nil {
            try database.execute(
                "DELETE FROM folder_hashes WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(path.text))
        }
        for (path, hash) in hashes where known[path] != hash {
            try database.execute(
                """
                INSERT OR REPLACE INTO folder_hashes (folder, path, inode, byte_count, modified, changed, digest)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """, .blob(folder.bytes), .text(path.text), .integer(Int64(bitPattern: hash.signature.inode)),
                .integer(hash.signature.byteCount), .integer(hash.signature.modified),
                .integer(hash.signature.changed), .blob(hash.digest))
        }
    }

    /// Returns the stored digests of the files at a path, and below it.
    func fileHashes(at path: FolderPath, in folder: ItemID) throws -> [FolderPath: FolderTree.KnownHash] {
        let columns = Self.hashColumns
        let hashes =
            try database.rows(
                "SELECT \(columns) FROM folder_hashes WHERE folder = ? AND path = ?", .blob(folder.bytes),
                .text(path.text), decode: Self.fileHash)
            + database.rows(
                "SELECT \(columns) FROM folder_hashes WHERE folder = ? AND path > ? AND path < ?",
                .blob(folder.bytes), .text(path.text + "/"), .text(path.text + "0"), decode: Self.fileHash)
        return Dictionary(hashes.compactMap(\.self)) { _, last in last }
    }
}

extension Store {
    /// The state of synced folders.
    var folders: FolderStore { FolderStore(self) }
}
