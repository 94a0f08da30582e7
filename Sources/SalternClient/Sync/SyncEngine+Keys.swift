extension SyncEngine {
    /// Whether something in the page is sealed with a key that this device does not know.
    func hasUnknownKey(_ page: ChangePage) -> Bool {
        page.changes.contains { change in
            !change.isChunk && change.content.map(isUnderUnknownKey) ?? false
        }
    }

    /// The server's version, when it is what was changed here, sealed anew and nothing else: the change goes on from it.
    ///
    /// Whoever seals anew makes the next edit under another key; a base that was sealed anew here has its number. A person who
    /// restores a version makes the next edit too, under the same key: that is a wish of their own.
    func resealed(_ server: ItemState, _ change: LocalChange) -> StoredItem? {
        guard let content = server.content, let base = change.baseContent,
            let theirs = try? sealer.open(content, server.id),
            let known = try? sealer.open(
                ItemContent(
                    collection: content.collection, format: content.format, title: base.title, body: base.body),
                server.id),
            known.item == theirs.item,
            theirs.edit.number == known.edit.number
                || (theirs.edit.number == known.edit.number + 1
                    && isUnderAnotherKey(content.body.bytes, than: base.body))
        else { return nil }
        return StoredItem(id: server.id, revision: server.revision, content: content, edit: theirs.edit.number)
    }

    /// Whether a version is the known one in other bytes: the same edit with the same content.
    ///
    /// After a rotation every device seals what it has as the edit that the rotation has made of it on the server. The edit
    /// before is not compared: after two rotations each has its own bytes of it. A server gains nothing with a version that
    /// says the same.
    func isKnown(_ version: StoredItem, _ content: PlainItem, as item: StoredItem) -> Bool {
        version.edit == item.edit && version.content.collection == item.content.collection
            && (try? sealer.open(item.content, item.id).item) == content
    }

    private func isUnderAnotherKey(_ body: [UInt8], than other: [UInt8]) -> Bool {
        guard let key = try? SealedBox.keyID(of: body), let known = try? SealedBox.keyID(of: other) else {
            return false
        }
        return key != known
    }
}
