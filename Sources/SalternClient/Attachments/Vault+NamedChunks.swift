/// The chunks that are in use.
extension Vault {
    /// Formats of other clients, whose items name no chunks. An item of any further format may be of a later version of
    /// the kit.
    private static let foreignFormats: Set = ["rncryptor-v3", "aes-256-gcm", "aes-256-gcm-iv16", "opaque"]

    /// Returns true when a manifest can be in unreadable content. Such content is in a format of a later version of the
    /// kit, or a version on the server that cannot be opened. Then no chunk is removed.
    func mayLackManifests() throws(VaultError) -> Bool {
        try stored {
            try store.hasItemsBehind() || store.hasFormats(otherThan: Self.foreignFormats.union([SealedBox.format]))
        }
    }

    /// Returns the chunks that items name, according to the index of manifests.
    /// - Returns: Also true when everything that arrived since the last search can be read.
    func indexedChunks(_ sealer: Sealer) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var named: Set<ItemID> = []
        let isWhole = try forEachManifestWithChunks(sealer) { _, _, manifest in named.formUnion(manifest.chunks) }
        return (named, isWhole)
    }

    /// Opens all content and returns the chunks that it names.
    /// - Returns: Also true when all of it can be read. Unreadable content may name any chunk.
    func namedChunks(_ sealer: Sealer) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var chunks = NamedChunks()
        try stored {
            try store.forEachContent { id, content in chunks.add(content, id, sealer) }
        }
        return (chunks.named, chunks.isWhole)
    }

    /// Returns the chunks that kept replaced versions name. Such versions keep chunks, but do not postpone the day on
    /// which a chunk without another name is removed.
    func chunksOfReplacedVersions(_ sealer: Sealer) throws(VaultError) -> (named: Set<ItemID>, isWhole: Bool) {
        var chunks = NamedChunks()
        try stored {
            try store.forEachReplaced(of: nil) { version in chunks.add(version.content, version.item, sealer) }
        }
        return (chunks.named, chunks.isWhole)
    }

    private struct NamedChunks {
        var named: Set<ItemID> = []
        var isWhole = true

        mutating func add(_ content: ItemContent, _ id: ItemID, _ sealer: Sealer) {
            guard content.format == SealedBox.format else {
                if !Vault.foreignFormats.contains(content.format) { isWhole = false }
                return
            }
            guard let opened = try? sealer.open(content, id) else { return isWhole = false }
            let attachments = Attachment.all(in: opened.item.body)
            for manifest in attachments.found { named.formUnion(manifest.chunks) }
            if !attachments.isWhole { isWhole = false }
        }
    }
}
