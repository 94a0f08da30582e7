extension SyncEngine {
    /// Stores a version that cannot be opened, because its key may arrive. If a version is known, that one stays
    /// instead, with its revision. A change of it then conflicts with the unreadable version, and does not replace it.
    /// - Parameter other: The copy with the local change.
    func keepSealed(
        _ server: ItemState, over item: StoredItem?, other: ItemID? = nil, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        try store.note(.unreadable, server.id, other: other)
        if isUnderUnknownKey(content) { try store.set(.unread, 1) }
        if let item, !item.isSealed {
            try store.setListed(item.id, listing)
            return try store.setBehind(item.id, server.revision)
        }
        try store.put(StoredItem(id: server.id, revision: server.revision, content: content, edit: 0), listing: listing)
        report.changed.insert(server.id)
    }

    /// Returns true for content that is sealed with an unknown key.
    func isUnderUnknownKey(_ content: ItemContent) -> Bool {
        guard content.format == SealedBox.format, let id = try? SealedBox.keyID(of: content.body.bytes) else {
            return false
        }
        return (try? sealer.keyring.key(id)) == nil
    }

    /// Returns true when the page contains an item sealed with an unknown key.
    func hasUnknownKey(_ page: ChangePage) -> Bool {
        page.changes.contains { change in
            !change.isChunk && change.content.map(isUnderUnknownKey) ?? false
        }
    }

    /// Returns the server's version when it is the base of the change, only sealed with another key. The change
    /// continues from it.
    ///
    /// Sealing again keeps the number of the edit. A user who restores a version makes the next edit, which is a change
    /// of its own.
    func resealed(_ server: ItemState, _ change: LocalChange) -> StoredItem? {
        guard let content = server.content, let base = change.baseContent,
            let theirs = try? sealer.open(content, server.id),
            let known = try? sealer.open(
                ItemContent(
                    collection: content.collection, format: content.format, title: base.title, body: base.body),
                server.id),
            known.item == theirs.item, theirs.edit.number == known.edit.number
        else { return nil }
        return StoredItem(id: server.id, revision: server.revision, content: content, edit: theirs.edit.number)
    }

    /// Returns true when a version is the known one in other bytes: the same edit and content, under the current key.
    ///
    /// After a rotation every device seals its content again. The previous edit is not compared, because its bytes
    /// differ. A version that precedes the rotation is an older one, and is sealed again.
    func isKnown(_ version: StoredItem, _ content: PlainItem, as item: StoredItem) -> Bool {
        version.edit == item.edit && version.content.collection == item.content.collection
            && (try? SealedBox.keyID(of: version.content.body.bytes)) == sealer.keyring.currentKey.id
            && (try? sealer.open(item.content, item.id).item) == content
    }
}
