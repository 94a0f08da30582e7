internal import Cryptography

/// Where the manifests of an attachment are, so that nobody opens everything to find them. What is noted is where to look:
/// an item may have another version by now.
extension Store {
    /// Notes that a version is here, before it is. One whose bytes are here already says nothing new.
    /// - Parameter opened: The body; nil for who has not opened it.
    func noteVersion(_ id: ItemID, _ body: [UInt8], opened: SecureBytes? = nil) throws {
        if let opened {
            let attachments = Attachment.all(in: opened)
            for attachment in attachments.found { try noteManifest(attachment, in: id) }
            // One that cannot be read is examined again by each search.
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
        // Named between two sweeps, a chunk begins to age again.
        for chunk in attachment.chunks { try forgetUnnamed(chunk) }
    }

    /// No version of the item has one any more.
    func forgetManifest(of attachment: ItemID, in item: ItemID) throws {
        try database.execute(
            "DELETE FROM manifests WHERE attachment = ? AND item = ?", .blob(attachment.bytes), .blob(item.bytes))
    }

    /// The items in which manifests of an attachment may be.
    func items(ofAttachment id: ItemID) throws -> [ItemID] {
        try database.rows("SELECT item FROM manifests WHERE attachment = ? ORDER BY item", .blob(id.bytes)) {
            try Self.id($0, 0)
        }
    }

    /// The items with a manifest that names chunks, or once did.
    func itemsWithChunks() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT item FROM manifests WHERE has_chunks ORDER BY item") { try Self.id($0, 0) }
    }

    /// Items with a version that nobody has looked at.
    func unreadItems() throws -> [ItemID] {
        try database.rows("SELECT id FROM unread_items ORDER BY id") { try Self.id($0, 0) }
    }

    /// Every version of the item was looked at.
    func noteRead(_ id: ItemID) throws {
        try database.execute("DELETE FROM unread_items WHERE id = ?", .blob(id.bytes))
    }

    /// Every version of an item that is here: what the server has, what is kept in the trash, what was changed here and what
    /// it was changed from.
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
