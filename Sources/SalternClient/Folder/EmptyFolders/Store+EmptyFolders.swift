/// Folders that have items.
extension Store {
    private static let folderColumns = "id, path, revision, sequence, ignored"

    private static func knownFolder(_ row: SQLiteRow) throws -> (ItemID, KnownFolder) {
        guard let text = row.text(1), let path = try? FolderPath(text) else { throw StoreError.damaged }
        let stamp = ItemStamp(revision: row.integer(2), sequence: row.integer(3))
        return (
            try id(row, 0),
            KnownFolder(path: path, stamp: stamp == ItemStamp() ? nil : stamp, isIgnored: row.integer(4) == 1)
        )
    }

    func knownFolders(in folder: ItemID) throws -> [ItemID: KnownFolder] {
        let folders = try database.rows(
            "SELECT \(Self.folderColumns) FROM folder_folders WHERE folder = ?", .blob(folder.bytes),
            decode: Self.knownFolder)
        return Dictionary(folders) { _, last in last }
    }

    func knownFolder(_ id: ItemID, in folder: ItemID) throws -> KnownFolder? {
        try database.rows(
            "SELECT \(Self.folderColumns) FROM folder_folders WHERE folder = ? AND id = ?", .blob(folder.bytes),
            .blob(id.bytes), decode: Self.knownFolder
        ).first?.1
    }

    /// Returns the items of the folder at a path and of those below it.
    func knownFolders(around path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        try knownFolders(at: path, in: folder)
            + database.rows(
                "SELECT id FROM folder_folders WHERE folder = ? AND path > ? AND path < ?", .blob(folder.bytes),
                .text(path.text + "/"), .text(path.text + "0")
            ) { try Self.id($0, 0) }
    }

    /// Returns the items of the folder at a path.
    func knownFolders(at path: FolderPath, in folder: ItemID) throws -> [ItemID] {
        try database.rows(
            "SELECT id FROM folder_folders WHERE folder = ? AND path = ?", .blob(folder.bytes), .text(path.text)
        ) { try Self.id($0, 0) }
    }

    /// Stores the state of a folder, or removes it with nil.
    func setKnownFolder(_ id: ItemID, _ known: KnownFolder?, in folder: ItemID) throws {
        guard let known else {
            try database.execute(
                "DELETE FROM folder_folders WHERE folder = ? AND id = ?", .blob(folder.bytes), .blob(id.bytes))
            return
        }
        try database.execute(
            """
            INSERT OR REPLACE INTO folder_folders (folder, id, path, revision, sequence, ignored)
            VALUES (?, ?, ?, ?, ?, ?)
            """, .blob(folder.bytes), .blob(id.bytes), .text(known.path.text), .optional(known.stamp?.revision),
            .optional(known.stamp?.sequence), .integer(known.isIgnored ? 1 : 0))
    }
}
