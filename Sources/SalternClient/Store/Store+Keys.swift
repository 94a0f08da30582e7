internal import Cryptography

extension DataKey {
    /// A digest of 16 bytes that recognises the key in a list of retired ones.
    fileprivate var retirementDigest: [UInt8] {
        HKDF.deriveKey(from: bytes, info: SealingLabels.retiredKey.utf8, byteCount: 16)
            .withUnsafeBytes { [UInt8]($0) }
    }
}

extension Store {
    /// Returns the ids of the data keys in the account's last confirmed keyring, the current one last.
    func keyIDs() throws -> [DataKey.ID] {
        let bytes = try fact(.keyIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 4).compactMap { start in
            DataKey.ID(bytes: bytes[start...].prefix(4))
        }
    }

    /// Records the data keys. If unread content waits and there are new keys, all items are listed again.
    func noteKeys(of keyring: Keyring) throws {
        let known = Set(try keyIDs())
        let ids = keyring.dataKeys.map(\.id)
        try set(.keyIDs, ids.flatMap(\.bytes))
        guard try hasUnread(), !known.isSuperset(of: ids) else { return }
        try set(.unread, nil)
        try beginListing()
    }

    /// Records that keys of the previous keyring are no longer in use.
    func retireKeys(of previous: Keyring, for keyring: Keyring) throws {
        let retired = previous.dataKeys.filter { key in !keyring.dataKeys.contains(key) }.map(\.retirementDigest)
        guard !retired.isEmpty else { return }
        let known = try fact(.retiredKeys) ?? []
        try set(.retiredKeys, known + retired.flatMap(\.self))
    }

    /// Returns true when a rotation that this device recorded has retired the key.
    func isRetired(_ key: DataKey) throws -> Bool {
        let known = try fact(.retiredKeys) ?? []
        let digest = key.retirementDigest
        return stride(from: 0, to: known.count, by: digest.count).contains { known[$0...].starts(with: digest) }
    }

    /// Returns true when the store has content under an unknown key.
    func hasUnread() throws -> Bool { try fact(.unread) != nil }

    /// Starts a complete listing with the next page.
    func beginListing() throws {
        try set(.cursor, nil)
        try set(.listing, (number(.listing) ?? 0) + 1)
    }
}

extension Store {
    private static let page = 100

    /// Seals content again that the keys of `new` cannot open: items, the trash, replaced versions, chunks, and
    /// changes. An item keeps its edit, as on the server. A change becomes a later edit, because its previous bytes may
    /// be in transit. Content that `old` cannot open is not changed.
    func reseal(from old: any ItemSealing, to new: any ItemSealing) throws {
        try resealItems("items", from: old, to: new)
        try resealItems("trash", from: old, to: new)
        try resealVersions(from: old, to: new)
        try resealContents(from: old, to: new)
        try forEachChange { try reseal($0, from: old, to: new) }
    }

    private func resealItems(_ table: String, from old: any ItemSealing, to new: any ItemSealing) throws {
        var last: [UInt8] = []
        while true {
            let page = try ids(in: table, after: last, limit: Self.page)
            guard let end = page.last else { return }
            last = end.bytes
            for id in page {
                guard let item = try table == "items" ? item(id) : trashed(id),
                    let content = new.resealed(item.content, id, from: old)
                else { continue }
                try database.execute(
                    "UPDATE \(table) SET title = ?, body = ? WHERE id = ?", .optional(content.title?.bytes),
                    .blob(content.body.bytes), .blob(id.bytes))
            }
        }
    }

    private func reseal(_ change: LocalChange, from old: any ItemSealing, to new: any ItemSealing) throws {
        var next = change
        if let content = change.content, let sealed = new.resealed(content, change.id, from: old, asNextEdit: true) {
            next.content = sealed
            next.edit = (try? new.open(sealed, change.id))?.edit.number ?? change.edit
        }
        if let base = change.baseContent {
            // Its collection is the one of the item before the change.
            let collections = [try item(change.id)?.content.collection, change.content?.collection].compactMap(\.self)
            let sealed = collections.lazy.compactMap { collection in
                new.resealed(
                    ItemContent(
                        collection: collection, format: SealedBox.format, title: base.title, body: base.body),
                    change.id, from: old)
            }.first
            if let sealed { next.baseContent = (sealed.title?.bytes, sealed.body.bytes) }
        }
        try write(next, isSame: true)
    }

    private func resealVersions(from old: any ItemSealing, to new: any ItemSealing) throws {
        var last: Int64 = 0
        while true {
            let page = try replacedNumbers(after: last, limit: Self.page)
            guard let end = page.last else { return }
            last = end
            for number in page {
                guard let version = try replaced(number),
                    let content = new.resealed(version.content, version.item, from: old)
                else { continue }
                try replaceSealed(version, by: content)
            }
        }
    }

    /// The ids of the items on the server, in their order.
    func itemIDs(after id: ItemID?, limit: Int) throws -> [ItemID] {
        try ids(in: "items", after: id?.bytes ?? [], limit: limit)
    }

    private func ids(in table: String, after id: [UInt8], limit: Int) throws -> [ItemID] {
        try database.rows(
            "SELECT id FROM \(table) WHERE id > ? ORDER BY id LIMIT ?", .blob(id), .integer(Int64(limit))
        ) { row in try Self.id(row, 0) }
    }

    /// Returns the number of changes whose key is not in the keyring.
    func changeCount(unknownTo keyring: Keyring) throws -> Int {
        let heads = try database.rows(
            "SELECT substr(body, 1, 5) FROM changes WHERE body IS NOT NULL", decode: { $0.blob(0) ?? [] })
        return heads.count { head in !keyring.dataKeys.contains { head.dropFirst().starts(with: $0.id.bytes) } }
    }
}
