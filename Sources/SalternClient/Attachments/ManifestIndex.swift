internal import Cryptography

/// Searches for the manifests of attachments in the items of this device, and for the chunks that they name.
final class ManifestIndex {
    /// Formats of other clients. Their items name no chunks. An item of any further format may be of a later version of
    /// the kit.
    fileprivate static let foreignFormats: Set = ["rncryptor-v3", "aes-256-gcm", "aes-256-gcm-iv16", "opaque"]

    private let scope: ItemScope
    private let store: Store
    /// The number of versions that were opened to search for manifests.
    private(set) var readCount = 0

    init(_ scope: ItemScope) {
        self.scope = scope
        store = scope.store
    }

    /// Calls `body` with the manifests of one attachment on this device, in all versions. It opens versions that are
    /// not indexed yet, each once, and then the candidates from the index.
    /// - Returns: True when all items that may be manifests can be opened.
    func forEachManifest(
        of attachment: ItemID, _ sealer: any ItemSealing, _ body: (ItemID, ItemContent, Attachment) throws -> Void
    ) throws(VaultError) -> Bool {
        try scope.stored {
            try store.transaction {
                var isWhole = try readUnread(sealer)
                for id in try store.items(ofAttachment: attachment) {
                    var isThere = false
                    for content in try store.versions(of: id) where content.format == SealedBox.format {
                        guard let opened = read(content, id, sealer) else {
                            (isWhole, isThere) = (false, true)
                            continue
                        }
                        let attachments = Attachment.all(in: opened.body)
                        if !attachments.isWhole { isWhole = false }
                        for manifest in attachments.found where manifest.id == attachment {
                            isThere = true
                            try body(id, content, manifest)
                        }
                    }
                    if !isThere { try store.forgetManifest(of: attachment, in: id) }
                }
                return isWhole
            }
        }
    }

    /// Returns the manifests on this device, in all versions, whose chunks are not all on the server.
    /// - Returns: Also true when all items that may be manifests can be opened.
    func manifests(
        lackingChunksOf there: Set<ItemID>, _ sealer: any ItemSealing
    ) throws(VaultError) -> (lacking: [Attachment], isWhole: Bool) {
        var lacking: [Attachment] = []
        let isWhole = try forEachManifestWithChunks(sealer) { _, _, manifest in
            if !there.isSuperset(of: manifest.chunks) && !lacking.contains(manifest) { lacking.append(manifest) }
        }
        return (lacking, isWhole)
    }

    /// Calls `body` with the manifests on this device, in all versions, that name chunks.
    /// - Returns: True when all items that may be manifests can be opened.
    func forEachManifestWithChunks(
        _ sealer: any ItemSealing, _ body: (ItemID, ItemContent, Attachment) throws -> Void
    ) throws(VaultError) -> Bool {
        try scope.stored {
            try store.transaction {
                var isWhole = try readUnread(sealer)
                for id in try store.itemsWithChunks() {
                    for content in try store.versions(of: id) where content.format == SealedBox.format {
                        guard let opened = read(content, id, sealer) else {
                            isWhole = false
                            continue
                        }
                        let attachments = Attachment.all(in: opened.body)
                        if !attachments.isWhole { isWhole = false }
                        for manifest in attachments.found where !manifest.chunks.isEmpty {
                            try body(id, content, manifest)
                        }
                    }
                }
                return isWhole
            }
        }
    }

    /// Indexes the versions that are not indexed.
    /// - Returns: True when all of them can be opened. The others are examined again, because their key may arrive.
    private func readUnread(_ sealer: any ItemSealing) throws -> Bool {
        var isWhole = true
        for id in try store.unreadItems() {
            var opens = true
            for content in try store.versions(of: id) where content.format == SealedBox.format {
                guard let opened = read(content, id, sealer) else {
                    opens = false
                    continue
                }
                let attachments = Attachment.all(in: opened.body)
                for manifest in attachments.found { try store.noteManifest(manifest, in: id) }
                if !attachments.isWhole { opens = false }
            }
            if opens { try store.noteRead(id) } else { isWhole = false }
        }
        return isWhole
    }

    private func read(_ content: ItemContent, _ id: ItemID, _ sealer: any ItemSealing) -> PlainItem? {
        readCount += 1
        return (try? sealer.open(content, id))?.item
    }

    // MARK: Chunks in use

    /// Returns true when the server has versions that are not on this device: they cannot be opened here, or do not
    /// count in a shared vault.
    func lacksVersions() throws -> Bool {
        try store.hasItemsBehind() || scope.owner != .account && store.hasItemsSetAside()
    }

    /// Returns true when a manifest can be in unreadable content. Such content is in a format of a later version of the
    /// kit, or a version on the server that cannot be opened. Then no chunk is removed.
    func mayLackManifests() throws(VaultError) -> Bool {
        try scope.stored {
            try lacksVersions() || store.hasFormats(otherThan: Self.foreignFormats.union([SealedBox.format]))
        }
    }

    /// Returns the chunks that items name, according to the index of manifests.
    /// - Returns: Also true when everything that arrived since the last search can be read.
    func indexedChunks(_ sealer: any ItemSealing) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var named: Set<ItemID> = []
        let isWhole = try forEachManifestWithChunks(sealer) { _, _, manifest in named.formUnion(manifest.chunks) }
        return (named, isWhole)
    }

    /// Opens all content and returns the chunks that it names.
    /// - Returns: Also true when all of it can be read. Unreadable content may name any chunk.
    func namedChunks(_ sealer: any ItemSealing) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var chunks = NamedChunks()
        try scope.stored {
            try store.forEachContent { id, content in chunks.add(content, id, sealer) }
        }
        return (chunks.named, chunks.isWhole)
    }

    /// Returns the chunks that kept replaced versions name. Such versions keep chunks, but do not postpone the day on
    /// which a chunk without another name is removed.
    func chunksOfReplacedVersions(_ sealer: any ItemSealing) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var chunks = NamedChunks()
        try scope.stored {
            try store.forEachReplaced(of: nil) { version in chunks.add(version.content, version.item, sealer) }
        }
        return (chunks.named, chunks.isWhole)
    }
}

private struct NamedChunks {
    var named: Set<ItemID> = []
    var isWhole = true

    mutating func add(_ content: ItemContent, _ id: ItemID, _ sealer: any ItemSealing) {
        guard content.format == SealedBox.format else {
            if !ManifestIndex.foreignFormats.contains(content.format) { isWhole = false }
            return
        }
        guard let opened = try? sealer.open(content, id) else { return isWhole = false }
        let attachments = Attachment.all(in: opened.item.body)
        for manifest in attachments.found { named.formUnion(manifest.chunks) }
        if !attachments.isWhole { isWhole = false }
    }
}

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

    fileprivate func noteManifest(_ attachment: Attachment, in item: ItemID) throws {
        try database.execute(
            """
            INSERT INTO manifests (attachment, item, has_chunks) VALUES (?, ?, ?)
            ON CONFLICT (attachment, item) DO UPDATE SET has_chunks = 1 WHERE excluded.has_chunks > has_chunks
            """, .blob(attachment.id.bytes), .blob(item.bytes), .integer(attachment.chunks.isEmpty ? 0 : 1))
        // A chunk that is named between two sweeps starts to age again.
        for chunk in attachment.chunks { try forgetUnnamed(chunk) }
    }

    /// Records that no version of the item contains the attachment.
    fileprivate func forgetManifest(of attachment: ItemID, in item: ItemID) throws {
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
    fileprivate func itemsWithChunks() throws -> [ItemID] {
        try database.rows("SELECT DISTINCT item FROM manifests WHERE has_chunks ORDER BY item") { try Self.id($0, 0) }
    }

    /// Returns the items with a version that is not indexed.
    fileprivate func unreadItems() throws -> [ItemID] {
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
