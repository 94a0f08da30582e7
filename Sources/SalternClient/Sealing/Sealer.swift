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
struct Sealer: Sendable {
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
    func open(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> (item: PlainItem, edit: SealedBox.Edit)
    {
        guard content.format == SealedBox.format else { throw .malformed }
        let body = try open(content.body.bytes, place(.body, id, content.collection))
        var title: String?
        if let sealed = content.title {
            let opened = try open(sealed.bytes, place(.title, id, content.collection))
            // A title of another edit means that the server has mixed versions.
            guard opened.edit == body.edit else { throw .notAuthentic }
            title = opened.content.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return (PlainItem(title: title, body: body.content), body.edit)
    }

    private func open(_ sealed: [UInt8], _ place: SealedBox.Place) throws(SealedBox.Failure) -> SealedBox.Content {
        try SealedBox.open(sealed, at: place, with: keyring.key(SealedBox.keyID(of: sealed)))
    }

    private func place(_ part: SealedBox.Part, _ id: ItemID, _ collection: String) -> SealedBox.Place {
        SealedBox.Place(part, account: account, item: id, collection: collection)
    }
}
