/// Two devices can have copies of one store: a backup was restored on a new device, or its folder was copied. What only one
/// device may use gets a new name in a copy.
extension Store {
    /// More than the number of times that a store is copied in its life.
    private static let formerLimit = 16

    /// Gives the store a new identity when its file is another one than it was.
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
    /// - It gets another name in the markers of folders. A folder that the store has not been in sync with since is compared
    ///   with the lines of the former names.
    /// - Edits that were not sent count as sent, because the other device may send them: what is edited after them goes on from
    ///   them.
    /// - Uploads of attachments begin under new ids, and chunks that were sent before are not taken back: the other device
    ///   may go on with them, and put an item that names them.
    func renewIdentity() throws {
        if let id = try fact(.storeID) {
            let former = try id + (fact(.formerStoreIDs) ?? [])
            try set(.formerStoreIDs, Array(former.prefix(Self.formerLimit * id.count)))
            try set(.storeID, nil)
            try database.execute("UPDATE folder_generations SET has_line = 2 WHERE has_line = 1")
        }
        try forEachChange { change in if change.sent == nil { try markSent([change]) } }
        try database.execute("DELETE FROM draft_chunks")
        try database.execute("DELETE FROM folder_uploads")
    }

    /// Returns the names that the store had in the markers of folders before it got the present one.
    func formerStoreIDs() throws -> [ItemID] {
        let bytes = try fact(.formerStoreIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 16).compactMap { ItemID(bytes: bytes[$0...].prefix(16)) }
    }
}
