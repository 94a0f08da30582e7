/// Reads the data of a few files, by their paths and ids.
extension Store {
    /// Returns the files at a path, below it, and at the paths of the folders above it.
    func knownFiles(around path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        var ids = try database.rows(
            "SELECT id FROM folder_files WHERE folder = ? AND path > ? AND path < ?", .blob(folder.bytes),
            .text(path.text + "/"), .text(path.text + "0")
        ) { try Self.id($0, 0) }
        for place in [path] + path.folders {
            ids += try database.rows(
                "SELECT id FROM folder_files WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(place.text)
            ) { try Self.id($0, 0) }
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
        ) { try Self.id($0, 0) }.contains { !ids.contains($0) }
    }

    /// Returns the version of an item in a collection; nil when it has none.
    func stamp(_ id: ItemID, in collection: String) throws -> ItemStamp? {
        try database.rows(
            """
            SELECT revision, NULL FROM items i
            WHERE id = ?1 AND collection = ?2 AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL
            SELECT i.revision, c.sequence FROM changes c LEFT JOIN items i ON i.id = c.id
            WHERE c.id = ?1 AND c.collection = ?2
            """, .blob(id.bytes), .text(collection)
        ) { ItemStamp(revision: $0.integer(0), sequence: $0.integer(1)) }.first
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
