internal import Cryptography

/// An index of the items that contain an attachment's manifests, so that a search does not open all items. Its entries
/// are candidates: an item may have another version now.
extension Store {
    /// Indexes a version before it is stored. Bytes that are already stored need no index.
    /// - Parameter opened: The body; nil when it has not been opened.
    func noteVersion(_ id: ItemID, _ body: [UInt8], opened: SecureBytes? = nil) throws {
        if let opened {
            let attachments = Attachment.all(in: opened)
            for attachment in attachments.found { try noteManifest(attachment, in: id) }
            // Each search examines an unreadable version again.
            if attachments.isWhole { return }
        }
        try database.execute(
            """
            INSERT OR IGNORE INTO unread_items (id) SELECT ?1
            WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = ?1 AND body = ?2)
                AND NOT EXISTS (SELECT 1 FROM changes WHERE id = ?1 AND (body = ?2 OR base_body = ?2))
            """, .blob(id.bytes), .blob(body))
    }

    func noteManifest(_ attachment: Attachment, in item: ItemID) throws {
        try database.execute(
            """
            INSERT INTO manifests (attachment, item, has_chunks) VALUES (?, ?, ?)
            ON CONFLICT (attachment, item) DO UPDATE SET has_chunks = 1 WHERE excluded.has_chunks > has_chunks
            """, .blob(attachment.id.bytes), .blob(item.bytes), .integer(attachment.chunks.isEmpty ? 0 : 1))
        // A chunk that is named between two sweeps starts to age again.
        for chunk in attachment.chunks { try forgetUnnamed(chunk) }
    }

    /// Records that no version of the item contains the attachment.
    func forgetManifest(of attachment: ItemID, in item: ItemID) throws {
        try database.execute(
            "DELETE FROM manifests WHERE attachment = ? AND item = ?", .blob(attachment.bytes), .blob(item.bytes))
    }

    /// Returns the items that may contain manifests of an attachment.
    func items(ofAttachment id: ItemID) throws -> [ItemID] {
        try database.rows("SELECT item FROM manifests WHERE attachment = ? ORDER BY item", .blob(id.bytes)) {
            try Self.id($0, 0)
        }
    }

    /// Returns the items with a manifest that names chunks now, or did earlier.
    func itemsWithChunks() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT item FROM manifests WHERE has_chunks ORDER BY item") { try Self.id($0, 0) }
    }

    /// Returns the items with a version that is not indexed.
    func unreadItems() throws -> [ItemID] {
        try database.rows("SELECT id FROM unread_items ORDER BY id") { try Self.id($0, 0) }
    }

    /// Records that every version of the item is indexed.
    func noteRead(_ id: ItemID) throws {
        try database.execute("DELETE FROM unread_items WHERE id = ?", .blob(id.bytes))
    }

    /// Returns every version of an item on this device: on the server, in the trash, the unsent change and its base.
    func versions(of id: ItemID) throws -> [ItemContent] {
        let (item, change) = (try item(id), try change(id))
        var versions = [item?.content, try trashed(id)?.content, change?.content].compactMap(\.self)
        if let base = change?.baseContent {
            let collection = item?.content.collection ?? change?.content?.collection ?? ""
            versions.append(
                ItemContent(collection: collection, format: SealedBox.format, title: base.title, body: base.body))
        }
        return versions
    }
}
