public import Cryptography

/// The plaintext of an item.
public struct PlainItem: Sendable, Equatable {
    /// The title; nil for an item without one.
    public var title: String?
    /// The content.
    public var body: SecureBytes

    /// Creates an item's plaintext.
    public init(title: String? = nil, body: SecureBytes) {
        self.title = title
        self.body = body
    }
}

extension PlainItem {
    /// Compares titles byte by byte. `String` considers canonically equivalent texts equal.
    public static func == (left: PlainItem, right: PlainItem) -> Bool {
        left.hasTitle(right.title) && left.body == right.body
    }

    /// Returns true when the title is this one, byte by byte.
    func hasTitle(_ title: String?) -> Bool { self.title.map { Array($0.utf8) } == title.map { Array($0.utf8) } }
}

/// Seals and opens an account's items with the keys of its keyring.
struct Sealer: ItemSealing {
    let account: AccountID
    var keyring: Keyring

    /// The versions of an account have no findings.
    func noteReplaced(_ id: ItemID) {}

    /// Seals with the current data key.
    func seal(
        _ item: PlainItem, _ id: ItemID, collection: String, _ edit: SealedBox.Edit
    ) throws(SealedBox.Failure) -> ItemContent {
        let key = keyring.currentKey
        var title: [UInt8]?
        if let text = item.title {
            title = try SealedBox.seal(text.utf8, edit, at: place(.title, id, collection), with: key)
        }
        return ItemContent(
            collection: collection, format: SealedBox.format, title: title,
            body: try SealedBox.seal(item.body, edit, at: place(.body, id, collection), with: key))
    }

    /// Opens an item, and checks that title and body are of one edit.
    func open(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> OpenedItem {
        guard content.format == SealedBox.format else { throw .malformed }
        let body = try open(content.body.bytes, place(.body, id, content.collection))
        var title: String?
        if let sealed = content.title {
            let opened = try open(sealed.bytes, place(.title, id, content.collection))
            // A title of another edit means that the server has mixed versions.
            guard opened.edit == body.edit else { throw .notAuthentic }
            title = opened.content.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return OpenedItem(item: PlainItem(title: title, body: body.content), edit: body.edit)
    }

    /// Returns true for content whose key is no longer in the keyring.
    func isOutdated(_ content: ItemContent) -> Bool {
        guard let key = try? SealedBox.keyID(of: content.body.bytes) else { return false }
        return (try? keyring.key(key)) == nil
    }

    func renewed(_ content: ItemContent, _ id: ItemID, from old: any ItemSealing) -> ItemContent? {
        guard let known = try? old.open(content, id),
            let sealed = try? seal(known.item, id, collection: content.collection, known.edit),
            // Content that cannot be opened again would be lost.
            let opened = try? open(sealed, id), opened.item == known.item
        else { return nil }
        return sealed
    }

    func hash(of content: ItemContent, _ id: ItemID) -> [UInt8]? { SHA256.hash(content.body.bytes).bytes }

    /// Compares number, content and key.
    ///
    /// After a rotation every device seals its content again. The previous edit is not compared, because its bytes
    /// differ. A version that precedes the rotation is an older one, and is sealed again.
    func isSameEdit(_ version: ItemContent, as known: ItemContent, _ id: ItemID) -> Bool {
        guard version.collection == known.collection,
            (try? SealedBox.keyID(of: version.body.bytes)) == keyring.currentKey.id,
            let opened = try? open(version, id), let former = try? open(known, id)
        else { return false }
        return opened.edit.number == former.edit.number && opened.item == former.item
    }

    func isUnderUnknownKey(_ content: ItemContent) -> Bool { isOutdated(content) }

    var canWrite: Bool { true }

    var head: Int64? { nil }

    func documentKey() -> SecureBytes {
        HKDF.deriveKey(from: keyring.vaultKey, info: SealingLabels.documentID.utf8)
    }

    private func open(_ sealed: [UInt8], _ place: SealedBox.Place) throws(SealedBox.Failure) -> SealedBox.Content {
        try SealedBox.open(sealed, at: place, with: keyring.key(SealedBox.keyID(of: sealed)))
    }

    private func place(_ part: SealedBox.Part, _ id: ItemID, _ collection: String) -> SealedBox.Place {
        SealedBox.Place(part, account: account, item: id, collection: collection)
    }
}

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
