extension SyncEngine {
    /// What does not open is kept as it is sealed: its key may come. Where a version is known, that one stays instead, with
    /// the revision that it had: whoever changes it here meets the one that nobody could read, and does not go over it.
    /// - Parameter other: The copy that holds what was changed here.
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

    /// Whether it is sealed with a key that this device does not know.
    func isUnderUnknownKey(_ content: ItemContent) -> Bool {
        guard content.format == SealedBox.format, let id = try? SealedBox.keyID(of: content.body.bytes) else {
            return false
        }
        return (try? sealer.keyring.key(id)) == nil
    }
}
