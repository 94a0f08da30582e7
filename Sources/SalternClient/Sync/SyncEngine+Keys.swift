extension SyncEngine {
    /// Whether something in the page is sealed with a key that this device does not know.
    func hasUnknownKey(_ page: ChangePage) -> Bool {
        page.changes.contains { change in
            !change.isChunk && change.content.map(isUnderUnknownKey) ?? false
        }
    }

    /// The server's version, when it is what was changed here, sealed anew and nothing else: the change goes on from it.
    ///
    /// Whoever seals anew leaves the edit what it is. A person who restores a version makes the next edit: that is a wish of
    /// their own.
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

    /// Whether a version is the known one in other bytes: the same edit with the same content, under the key in force.
    ///
    /// After a rotation every device seals anew what it has. The edit before is not compared: each has its own bytes of it. A
    /// server gains nothing with a version that says the same; one of before the rotation is an older one, and is sealed anew.
    func isKnown(_ version: StoredItem, _ content: PlainItem, as item: StoredItem) -> Bool {
        version.edit == item.edit && version.content.collection == item.content.collection
            && (try? SealedBox.keyID(of: version.content.body.bytes)) == sealer.keyring.currentKey.id
            && (try? sealer.open(item.content, item.id).item) == content
    }
}
