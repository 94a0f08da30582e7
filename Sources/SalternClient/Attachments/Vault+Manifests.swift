/// Finding the manifests of an attachment.
extension Vault {
    /// The manifests of one attachment that are here, in whatever version. What nobody has looked at since it came is opened,
    /// once, and then the few items that may have them.
    /// - Returns: Whether everything that may be one opens.
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

    /// The manifests here, in whatever version, of which the server lacks chunks.
    /// - Returns: Also whether everything that may be one opens.
    func manifests(
        lackingChunksOf there: Set<ItemID>, _ sealer: Sealer
    ) throws(VaultError) -> (lacking: [Attachment], isWhole: Bool) {
        var lacking: [Attachment] = []
        let isWhole = try forEachManifestWithChunks(sealer) { _, _, manifest in
            if !there.isSuperset(of: manifest.chunks) && !lacking.contains(manifest) { lacking.append(manifest) }
        }
        return (lacking, isWhole)
    }

    /// The manifests here, in whatever version, that name chunks.
    /// - Returns: Whether everything that may be one opens.
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

    /// - Returns: Whether all of it opens. What does not is looked at again: its key may come.
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
