internal import Cryptography

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
