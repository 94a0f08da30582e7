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
