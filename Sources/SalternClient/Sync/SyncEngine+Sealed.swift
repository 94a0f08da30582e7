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
}
