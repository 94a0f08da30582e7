extension SyncEngine {
    /// Whether something in the page is sealed with a key that this device does not know.
    func hasUnknownKey(_ page: ChangePage) -> Bool {
        page.changes.contains { change in
            !change.isChunk && change.content.map(isUnderUnknownKey) ?? false
        }
    }

    /// The server's version, when it is what was changed here, sealed anew and nothing else: the change goes on from it.
    ///
    /// Whoever seals anew makes the next edit under another key; a base that was sealed anew here is that very edit. A
    /// person who restores a version makes the next edit too, under the same key: that is a wish of their own.
    func resealed(_ server: ItemState, _ change: LocalChange) -> StoredItem? {
        guard let content = server.content, let base = change.baseContent,
            let theirs = try? sealer.open(content, server.id),
            let known = try? sealer.open(
                ItemContent(
                    collection: content.collection, format: content.format, title: base.title, body: base.body),
                server.id),
            known.item == theirs.item,
            theirs.edit == known.edit
                || (theirs.edit.number == known.edit.number + 1
                    && isUnderAnotherKey(content.body.bytes, than: base.body))
        else { return nil }
        return StoredItem(id: server.id, revision: server.revision, content: content, edit: theirs.edit.number)
    }

    private func isUnderAnotherKey(_ body: [UInt8], than other: [UInt8]) -> Bool {
        guard let key = try? SealedBox.keyID(of: body), let known = try? SealedBox.keyID(of: other) else {
            return false
        }
        return key != known
    }
}
