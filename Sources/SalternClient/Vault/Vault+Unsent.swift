internal import Cryptography
internal import Foundation

/// The changes that the server has not confirmed.
extension Vault {
    /// Returns the number of changes that the server has not confirmed.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    public func unsentCount() throws(VaultError) -> Int { try stored { try store.changeCount() } }

    /// Returns true when deletions wait for the user's approval. They are of other devices (``agreeToDeletions(in:)``),
    /// or of files according to the last round of a folder (``FolderSettings/allowsDeletions``).
    ///
    /// ```swift
    /// if try await vault.areDeletionsHeld() { print(try await vault.heldDeletions().count) }
    /// ```
    public func areDeletionsHeld() throws(VaultError) -> Bool { try stored { try store.holdsDeletions() } }

    /// Returns the items whose present version the server does not have, in the order of sending, without deletions.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems(limit: 20) { print(item.title ?? "untitled", item.shortage ?? "waits") }
    /// ```
    /// - Parameter limit: The maximum number of items to return.
    public func unsentItems(limit: Int = .max) throws(VaultError) -> [ItemSummary] {
        var items: [ItemSummary] = []
        for id in try stored({ try store.changedIDs(limit: Int64(limit)) }) {
            if let item = try summary(of: id) { items.append(item) }
        }
        return items
    }

    /// Discards the unsent change of an item. The item returns to its last received state of the server, if there is
    /// one. The discarded content goes to the trash of this device. If the item exists, the content gets another id
    /// there.
    ///
    /// Content that was sent without a confirmation may be on the server. The next ``sync()`` then fetches it.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems() where item.shortage != nil { try await vault.discardChange(item.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no unsent change.
    public func discardChange(_ id: ItemID) throws(VaultError) {
        let sealer = try open.engine.sealer
        let copy = ItemID.random()
        try transaction {
            guard let change = try store.change(id) else { throw VaultError.notFound }
            let item = try store.item(id)
            if let content = change.content {
                var written = StoredItem(
                    id: id, revision: item?.revision ?? Revision(0), content: content, edit: change.edit)
                if item != nil, let opened = try? sealer.open(content, id).item,
                    let sealed = try? sealer.seal(opened, copy, collection: content.collection, .first)
                {
                    written = StoredItem(id: copy, revision: Revision(0), content: sealed, edit: 1)
                }
                try store.trash(written, at: Date())
            } else if item != nil {
                // The item is no longer deleted.
                try store.removeFromTrash(id)
            }
            try store.forgetChange(id)
            try store.forgetRefusals(of: id)
        }
        notify([id])
    }

    /// The maximum number of sealed bytes of an item that any plan and any batch allow.
    package static let longestItemByteCount = Int(PlanRoom.itemByteLimit)

    /// Rejects a body that is too long, before it is read.
    package func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        try await plan.refuseTooLong(bodyOf: byteCount)
    }
}
