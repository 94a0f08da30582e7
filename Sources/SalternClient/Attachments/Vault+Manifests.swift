/// Searches for the manifests of an attachment.
extension Vault {
    /// Calls `body` with the manifests of one attachment on this device, in all versions. It opens versions that are
    /// not indexed yet, each once, and then the candidates from the index.
    /// - Returns: True when all items that may be manifests can be opened.
    func forEachManifest(
        of attachment: ItemID, _ sealer: Sealer, _ body: (ItemID, ItemContent, Attachment) throws -> Void
    ) throws(VaultError) -> Bool {
        try stored {
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
        lackingChunksOf there: Set<ItemID>, _ sealer: Sealer
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
        _ sealer: Sealer, _ body: (ItemID, ItemContent, Attachment) throws -> Void
    ) throws(VaultError) -> Bool {
        try stored {
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
    private func readUnread(_ sealer: Sealer) throws -> Bool {
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

    private func read(_ content: ItemContent, _ id: ItemID, _ sealer: Sealer) -> PlainItem? {
        readCount += 1
        return (try? sealer.open(content, id))?.item
    }
}
