/// Files in the trash of a folder, by their names there.
extension Store {
    private static let columns = "name, path, digest, inode, byte_count, modified, changed, since"

    func trashedFiles(in folder: ItemID) throws -> [String: TrashedFile] {
        let files = try database.rows(
            "SELECT \(Self.columns) FROM folder_trash WHERE folder = ?", .blob(folder.bytes), decode: Self.trashed)
        return Dictionary(files) { _, last in last }
    }

    func trashedFile(_ name: String, in folder: ItemID) throws -> TrashedFile? {
        try database.rows(
            "SELECT \(Self.columns) FROM folder_trash WHERE folder = ? AND name = ?", .blob(folder.bytes), .text(name),
            decode: Self.trashed
        ).first?.1
    }

    private static func trashed(_ row: SQLiteRow) throws -> (String, TrashedFile) {
        guard let name = row.text(0), let digest = row.blob(2) else { throw StoreError.damaged }
        var file = TrashedFile(path: row.text(1).flatMap { try? FolderPath($0) }, digest: digest)
        if let inode = row.integer(3), let count = row.integer(4), let modified = row.integer(5),
            let changed = row.integer(6)
        {
            file.signature = FileSignature(
                inode: UInt64(bitPattern: inode), byteCount: count, modified: modified, changed: changed)
        }
        file.since = row.integer(7)
        return (name, file)
    }

    /// Stores a file, or removes it with nil.
    func setTrashed(_ name: String, _ file: TrashedFile?, in folder: ItemID) throws {
        guard let file else {
            try database.execute(
                "DELETE FROM folder_trash WHERE folder = ? AND name = ?", .blob(folder.bytes), .text(name))
            return
        }
        let signature = file.signature
        try database.execute(
            """
            INSERT OR REPLACE INTO folder_trash
                (folder, name, path, digest, inode, byte_count, modified, changed, since)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, .blob(folder.bytes), .text(name), file.path.map { .text($0.text) } ?? .null, .blob(file.digest),
            .optional(signature.map { Int64(bitPattern: $0.inode) }), .optional(signature?.byteCount),
            .optional(signature?.modified), .optional(signature?.changed), .optional(file.since))
    }
}
