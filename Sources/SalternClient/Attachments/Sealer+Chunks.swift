internal import Cryptography

extension Sealer {
    /// Returns the name of a chunk. Without the vault key, equal content of two accounts or attachments cannot be
    /// recognised.
    func chunkID(_ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> ItemID {
        Attachment.chunkID(
            attachment, index, content, with: HKDF.deriveKey(from: keyring.vaultKey, info: SealingLabels.chunkID.utf8))
    }

    func sealChunk(_ content: SecureBytes, _ id: ItemID) throws(SealedBox.Failure) -> ItemContent {
        ItemContent(
            collection: Attachment.chunkCollection, format: SealedBox.format,
            body: try SealedBox.seal(content, .first, at: place(ofChunk: id), with: keyring.currentKey))
    }

    func openChunk(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> SecureBytes {
        guard content.format == SealedBox.format else { throw .malformed }
        let key = try keyring.key(SealedBox.keyID(of: content.body.bytes))
        return try SealedBox.open(content.body.bytes, at: place(ofChunk: id), with: key).content
    }

    private func place(ofChunk id: ItemID) -> SealedBox.Place {
        SealedBox.Place(.chunk, account: account, item: id, collection: Attachment.chunkCollection)
    }
}

extension Attachment {
    /// Returns the name of a chunk under a key for names.
    static func chunkID(
        _ attachment: ItemID, _ index: Int, _ content: SecureBytes, with key: SecureBytes
    ) -> ItemID {
        let prefix = attachment.bytes + UInt64(index).bigEndianBytes
        let message = SecureBytes(count: prefix.count + content.count) { buffer in
            buffer.copyBytes(from: prefix)
            content.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: buffer[prefix.count...]).copyMemory(from: $0)
            }
        }
        let code = HMACSHA256.authenticationCode(for: message, using: key).bytes
        guard let id = ItemID(bytes: code.prefix(16)) else { preconditionFailure("sixteen bytes are an id") }
        return id
    }
}
