internal import Cryptography
internal import Foundation

/// What the server has not confirmed, and may never.
extension Vault {
    /// Returns the number of changes that the server has not confirmed.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    public func unsentCount() throws(VaultError) -> Int { try stored { try store.changeCount() } }

    /// Returns true when deletions wait for the user's consent: those of other devices (``agreeToDeletions(in:)``), or those of
    /// files, as far as the last round of a folder has seen (``FolderSettings/allowsDeletions``).
    ///
    /// ```swift
    /// if try await vault.areDeletionsHeld() { print(try await vault.heldDeletions().count) }
    /// ```
    public func areDeletionsHeld() throws(VaultError) -> Bool { try stored { try store.holdsDeletions() } }

    /// The items that the server does not have as they are here, in the order in which they are sent; deletions are not
    /// among them.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems(limit: 20) { print(item.title ?? "untitled", item.shortage ?? "waits") }
    /// ```
    /// - Parameter limit: No more than so many.
    public func unsentItems(limit: Int = .max) throws(VaultError) -> [ItemSummary] {
        var items: [ItemSummary] = []
        for id in try stored({ try store.changedIDs(limit: Int64(limit)) }) {
            if let item = try summary(of: id) { items.append(item) }
        }
        return items
    }

    /// Gives up what was changed of an item here and not sent: the item is what the server was last seen to have, and there
    /// is none where it has none. What was written goes to the trash of this device, under an id of its own where there is
    /// an item.
    ///
    /// What was sent and not confirmed may be on the server all the same: then the next ``sync()`` brings it.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems() where item.shortage != nil { try await vault.discardChange(item.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when nothing of it is unsent.
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
                // It is not deleted any more.
                try store.removeFromTrash(id)
            }
            try store.forgetChange(id)
            try store.forgetRefusals(of: id)
        }
        notify([id])
    }

    /// No plan and no batch allows more sealed bytes in an item.
    package static let longestItemByteCount = Int(PlanRoom.itemByteLimit)

    /// What is longer than the plan allows would stay unsent for ever.
    /// - Throws: ``VaultError/noRoom(_:)``
    func refuseTooLong(_ item: PlainItem) throws(VaultError) {
        let allowed = try stored { try store.number(.itemBytes) } ?? .max
        if let shortage = item.shortage(allowed: allowed) {
            // It may have been another plan: the next sync asks.
            isLimitInDoubt = true
            throw .noRoom(shortage)
        }
    }

    /// The same, before it is known what else the item has. What the server said before is asked for again, where it can
    /// be, before anything is refused.
    func refuseTooLong(_ body: SecureBytes) async throws(VaultError) {
        try await refuseTooLong(bodyOf: Int64(body.count))
    }

    /// The same for a body that was not read.
    package func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        // So little fits in every plan's item.
        if byteCount <= 4 << 10 { return }
        // What is longer than any item is that much too long, however it is sealed.
        let needed = Int64(SealedBox.sealedCount(Int(min(byteCount, 1 << 40))))
        let known = try await itemByteLimit()
        if PlanShortage(itemOf: needed, allowed: known) == nil { return }
        let allowed = (try? await room())?.itemBytes ?? known
        if let shortage = PlanShortage(itemOf: needed, allowed: allowed) { throw .noRoom(shortage) }
    }
}

extension PlainItem {
    /// Returns why the item cannot be sent; nil when it fits in the plan's items and in a batch.
    func shortage(allowed: Int64) -> PlanShortage? {
        let title = title.map { SealedBox.sealedCount($0.utf8.count) } ?? 0
        return PlanShortage(itemOf: Int64(SealedBox.sealedCount(body.count) + title), allowed: allowed)
    }
}
