internal import Cryptography

/// The vault's part of empty folders. Each function that writes does so in one transaction with the state of the
/// folder.
extension Vault {
    func setKnownFolder(_ id: ItemID, _ known: KnownFolder?, in folder: ItemID) throws(VaultError) {
        try stored { try store.transaction { try store.setKnownFolder(id, known, in: folder) } }
    }

    /// Stores the states of several folders, or removes them with nil.
    func setKnownFolders(_ folders: [ItemID: KnownFolder?], in folder: ItemID) throws(VaultError) {
        if folders.isEmpty { return }
        try stored {
            try store.transaction { for (id, known) in folders { try store.setKnownFolder(id, known, in: folder) } }
        }
    }

    /// Returns those of the folders that have items.
    func standing(_ folders: Set<FolderPath>, in folder: ItemID) throws(VaultError) -> Set<FolderPath> {
        try stored { try folders.filter { try !store.knownFolders(at: $0, in: folder).isEmpty } }
    }

    /// Creates the item of a folder.
    func putFolder(_ path: FolderPath, _ collection: String, in folder: ItemID) throws(VaultError) {
        let id = settings.newID()
        let item = PlainItem(title: path.folderTitle, body: SecureBytes(copying: [UInt8]()))
        try transaction {
            try items.putUnbounded(item, id, in: collection)
            try store.setKnownFolder(id, KnownFolder(path: path, stamp: try store.stamp(id)), in: folder)
        }
    }

    /// Deletes the item of a folder.
    /// - Returns: False when its version is not `seen`.
    func deleteFolder(_ id: ItemID, _ seen: ItemStamp, in folder: ItemID) throws(VaultError) -> Bool {
        try transaction {
            guard try store.stamp(id) == seen else { return false }
            try delete(id)
            try store.setKnownFolder(id, nil, in: folder)
            return true
        }
    }
}
