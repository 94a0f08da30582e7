internal import Cryptography

/// The data keys that a store has seen: those of the last confirmed keyring, and retired ones.
struct StoreKeys {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Returns the ids of the data keys in the account's last confirmed keyring, the current one last.
    func ids() throws -> [DataKey.ID] {
        let bytes = try store.fact(.keyIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 4).compactMap { start in
            DataKey.ID(bytes: bytes[start...].prefix(4))
        }
    }

    /// Records the data keys. If unread content waits and there are new keys, all items are listed again.
    func note(_ keyring: Keyring) throws {
        let known = Set(try ids())
        let new = keyring.dataKeys.map(\.id)
        try store.set(.keyIDs, new.flatMap(\.bytes))
        guard try hasUnread(), !known.isSuperset(of: new) else { return }
        try store.set(.unread, nil)
        try store.beginListing()
    }

    /// Records that keys of the previous keyring are no longer in use.
    func retireKeys(of previous: Keyring, for keyring: Keyring) throws {
        let retired = previous.dataKeys.filter { key in !keyring.dataKeys.contains(key) }.map(\.retirementDigest)
        guard !retired.isEmpty else { return }
        let known = try store.fact(.retiredKeys) ?? []
        try store.set(.retiredKeys, known + retired.flatMap(\.self))
    }

    /// Returns true when a rotation that this device recorded has retired the key.
    func isRetired(_ key: DataKey) throws -> Bool {
        let known = try store.fact(.retiredKeys) ?? []
        let digest = key.retirementDigest
        return stride(from: 0, to: known.count, by: digest.count).contains { known[$0...].starts(with: digest) }
    }

    /// Returns true when the store has content under an unknown key.
    func hasUnread() throws -> Bool { try store.fact(.unread) != nil }

    /// Returns the number of changes with a key that is not in the keyring.
    func changeCount(unknownTo keyring: Keyring) throws -> Int {
        let heads = try store.database.rows(
            "SELECT substr(body, 1, 5) FROM changes WHERE body IS NOT NULL", decode: { $0.blob(0) ?? [] })
        return heads.count { head in !keyring.dataKeys.contains { head.dropFirst().starts(with: $0.id.bytes) } }
    }
}

extension DataKey {
    /// A digest of 16 bytes that recognises the key in a list of retired ones.
    fileprivate var retirementDigest: [UInt8] {
        HKDF.deriveKey(from: bytes, info: SealingLabels.retiredKey.utf8, byteCount: 16)
            .withUnsafeBytes { [UInt8]($0) }
    }
}

/// Seals a store's content again that other keys cannot open: items, the trash, replaced versions, chunks, and changes.
///
/// An item keeps its edit, as on the server. A change becomes a later edit, because its previous bytes may be in
/// transit.
struct Resealing {
    private static let page = 100

    private let store: Store
    private let old: any ItemSealing
    private let new: any ItemSealing

    /// Prepares for content that `old` can open and `new` cannot. Other content is not changed.
    init(_ store: Store, from old: any ItemSealing, to new: any ItemSealing) {
        self.store = store
        self.old = old
        self.new = new
    }

    /// Seals the content.
    func run() throws {
        try resealItems("items")
        try resealItems("trash")
        try resealVersions()
        try store.resealContents(from: old, to: new)
        try store.forEachChange { try reseal($0) }
    }

    private func resealItems(_ table: String) throws {
        var last: [UInt8] = []
        while true {
            let page = try store.ids(in: table, after: last, limit: Self.page)
            guard let end = page.last else { return }
            last = end.bytes
            for id in page {
                guard let item = try table == "items" ? store.item(id) : store.trashed(id),
                    let content = new.resealed(item.content, id, from: old)
                else { continue }
                try store.database.execute(
                    "UPDATE \(table) SET title = ?, body = ? WHERE id = ?", .optional(content.title?.bytes),
                    .blob(content.body.bytes), .blob(id.bytes))
            }
        }
    }

    private func reseal(_ change: LocalChange) throws {
        var next = change
        if let content = change.content, let sealed = new.resealed(content, change.id, from: old, asNextEdit: true) {
            next.content = sealed
            next.edit = (try? new.open(sealed, change.id))?.edit.number ?? change.edit
        }
        if let base = change.baseContent {
            // Its collection is the one of the item before the change.
            let collections = [try store.item(change.id)?.content.collection, change.content?.collection].compactMap(
                \.self)
            let sealed = collections.lazy.compactMap { collection in
                new.resealed(
                    ItemContent(
                        collection: collection, format: SealedBox.format, title: base.title, body: base.body),
                    change.id, from: old)
            }.first
            if let sealed { next.baseContent = (sealed.title?.bytes, sealed.body.bytes) }
        }
        try store.write(next, isSame: true)
    }

    private func resealVersions() throws {
        var last: Int64 = 0
        while true {
            let page = try store.replacedNumbers(after: last, limit: Self.page)
            guard let end = page.last else { return }
            last = end
            for number in page {
                guard let version = try store.replaced(number),
                    let content = new.resealed(version.content, version.item, from: old)
                else { continue }
                try store.replaceSealed(version, by: content)
            }
        }
    }
}
