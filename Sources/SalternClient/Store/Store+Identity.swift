/// Distinguishes two copies of one store, after a backup was restored on a new device or its folder was copied. Names
/// that only one device may use are replaced in a copy.
extension Store {
    /// The maximum number of former names that are kept; more than the copies of a store in practice.
    private static let formerLimit = 16

    /// Gives the store a new identity when its file is not the previous one.
    func noteFile(at path: String) throws {
        guard let file = StoreFileIdentity(path: path) else { return }
        let known = try knownFile()
        if known == file { return }
        try transaction {
            if let known, !file.isSame(as: known) { try renewIdentity() }
            try setKnownFile(file)
        }
    }

    /// Makes the store independent of another one that it may be a copy of.
    ///
    /// - It gets another name in the markers of folders. A folder that it has not synced since is compared with the
    ///   lines of the former names.
    /// - Unsent edits count as sent, because the other device may send them. Later edits continue from them.
    /// - Uploads of attachments begin under new ids, and chunks that were sent before are not taken back. The other
    ///   device may continue them, and put an item that names them.
    func renewIdentity() throws {
        if let id = try fact(.storeID) {
            let former = try id + (fact(.formerStoreIDs) ?? [])
            try set(.formerStoreIDs, Array(former.prefix(Self.formerLimit * id.count)))
            try set(.storeID, nil)
            try database.execute("UPDATE folder_generations SET has_line = 2 WHERE has_line = 1")
        }
        for store in try views() {
            try store.forEachChange { change in if change.sent == nil { try store.markSent([change]) } }
            try store.database.execute("DELETE FROM draft_chunks")
        }
        try database.execute("DELETE FROM folder_uploads")
    }

    /// Returns the former names of the store in the markers of folders.
    func formerStoreIDs() throws -> [ItemID] {
        let bytes = try fact(.formerStoreIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 16).compactMap { ItemID(bytes: bytes[$0...].prefix(16)) }
    }
}
