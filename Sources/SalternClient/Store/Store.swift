internal import Cryptography
internal import Foundation

/// The data of a device: sealed items, unconfirmed changes, the cursor, the trash.
///
/// Every function that changes data is one transaction, so syncing can continue after any interruption of the process.
/// It is not `Sendable`: only the vault, an actor, uses it.
final class Store {
    let database: StoreTables
    /// The number of the edits that are being stored together; see ``together(_:)``.
    private(set) var group: Int64?

    /// Opens the store at a path, or creates one.
    init(path: String) throws {
        database = StoreTables(try SQLiteDatabase(path: path))
        try StoreSchema.prepare(database)
    }

    /// Copies a store into memory.
    init(copyOf store: Store) throws { database = try store.database.copied() }

    /// Uses the tables of one owner.
    init(_ tables: StoreTables) { database = tables }

    func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try database.transaction(body)
    }

    /// Marks the edits of a transaction to be sent in one batch, if possible.
    func together<Result>(_ body: () throws -> Result) throws -> Result {
        group = try nextSequence()
        defer { group = nil }
        return try body()
    }

    // MARK: Facts

    /// The tables with a fact.
    private func facts(_ name: StoreFact) -> StoreTables { name.isOfOwner ? database : database.ofAccount }

    func fact(_ name: StoreFact) throws -> [UInt8]? {
        try facts(name).rows("SELECT value FROM facts WHERE name = ?", .text(name.rawValue)) { $0.blob(0) ?? [] }.first
    }

    func set(_ name: StoreFact, _ value: [UInt8]?) throws {
        if let value {
            try facts(name).execute(
                "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                .text(name.rawValue), .blob(value))
        } else {
            try facts(name).execute("DELETE FROM facts WHERE name = ?", .text(name.rawValue))
        }
    }

    func text(_ name: StoreFact) throws -> String? {
        try fact(name).map { String(decoding: $0, as: UTF8.self) }
    }

    func number(_ name: StoreFact) throws -> Int64? {
        try text(name).flatMap { Int64($0) }
    }

    func set(_ name: StoreFact, _ number: Int64) throws { try set(name, Array(String(number).utf8)) }

    /// Returns a keyring's counter; 0 when there is none.
    func counter(_ name: StoreFact) throws -> UInt64 { try text(name).flatMap { UInt64($0) } ?? 0 }

    func set(_ name: StoreFact, counter: UInt64) throws { try set(name, Array(String(counter).utf8)) }

    /// Empties the write-ahead log, where SQLite keeps earlier pages. Within a transaction it has no effect.
    func truncateLog() { _ = try? database.rows("PRAGMA wal_checkpoint(TRUNCATE)") { _ in } }

    /// Releases the room of removed content to the disk, and empties the write-ahead log.
    func shrink() {
        _ = try? database.execute("VACUUM")
        truncateLog()
    }

    /// Closes the store. Further calls throw ``StoreClosed``.
    func close() { database.close() }

    /// True while another process may use it: see ``takeBack()``.
    var isLent: Bool { database.isLent }

    /// Lets another process use it. Reads and writes fail until ``takeBack()``.
    func lend() { database.lend() }

    /// Opens it again.
    func takeBack() throws { try database.takeBack() }

    /// True when the store was closed permanently. Temporary closing for another process does not count.
    var isClosed: Bool { database.handle == nil && !database.isLent }

    /// Throws unless the store is open.
    /// - Throws: ``StoreClosed``.
    func checkOpen() throws { try database.checkOpen() }

    /// Removes all data after a sign-out. Call ``close()`` then, because running operations would store data again.
    func removeEverything() throws {
        try database.transaction {
            for owner in try vaults() { try removeTables(of: owner) }
            let tables = try database.rows(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            ) { $0.text(0) ?? "" }
            for table in tables { try database.execute("DELETE FROM \(table)") }
            // The last number of a vault.
            try database.execute("DELETE FROM sqlite_sequence")
        }
    }

    // MARK: Present items

    /// Returns the present item, with its unconfirmed change. Nil when there is none.
    func current(_ id: ItemID) throws -> ItemContent? {
        if let change = try change(id) { return change.content }
        return try item(id)?.content
    }

    /// Returns the ids of a collection's present items.
    func currentIDs(_ collection: String) throws -> [ItemID] {
        try database.rows(
            """
            SELECT id FROM items i WHERE collection = ?1 AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL SELECT id FROM changes WHERE collection = ?1 ORDER BY 1
            """, .text(collection)
        ) { row in try Self.id(row, 0) }
    }

    /// Returns the collections of those items that exist on this device.
    func currentCollections(of ids: Set<ItemID>) throws -> [ItemID: String] {
        var collections: [ItemID: String] = [:]
        for id in ids {
            let changed = try database.rows("SELECT collection FROM changes WHERE id = ?", .blob(id.bytes)) {
                $0.text(0)
            }
            collections[id] =
                try changed.first
                ?? database.rows("SELECT collection FROM items WHERE id = ?", .blob(id.bytes)) { $0.text(0) }.first
                ?? nil
        }
        return collections
    }

    // MARK: Items

    private static let itemColumns = "id, revision, collection, format, iterations, title, body, edit, judged_at"

    func item(_ id: ItemID) throws -> StoredItem? {
        try database.rows("SELECT \(Self.itemColumns) FROM items WHERE id = ?", .blob(id.bytes), decode: Self.item)
            .first
    }

    /// Stores an item from the server.
    /// - Parameters:
    ///   - opened: Its body, if it has been opened.
    ///   - isSame: True for the same content in other bytes. The replaced version is then not kept.
    func put(_ item: StoredItem, listing: Int64, opened: SecureBytes? = nil, isSame: Bool = false) throws {
        let content = item.content
        if !isSame, let known = try self.item(item.id), known.content != content {
            try keepReplaced(item.id, known.content, edit: known.edit, revision: known.revision)
        }
        try noteVersion(item.id, content.body.bytes, opened: opened)
        try database.execute(
            """
            INSERT INTO items (\(Self.itemColumns), listing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, collection = excluded.collection,
                format = excluded.format, iterations = excluded.iterations, title = excluded.title, body = excluded.body,
                edit = excluded.edit, judged_at = excluded.judged_at, listing = excluded.listing, behind = NULL
            """, .blob(item.id.bytes), .integer(item.revision.number), .text(content.collection),
            .text(content.format), .optional(content.iterations.map(Int64.init)), .optional(content.title?.bytes),
            .blob(content.body.bytes), .integer(Int64(bitPattern: item.edit)), .optional(item.judgedAt),
            .integer(listing))
        // An earlier record is useful as long as this version has not been opened.
        if !item.isSealed { try database.execute("DELETE FROM graves WHERE id = ?", .blob(item.id.bytes)) }
    }

    /// Records that the server no longer has the item.
    func removeItem(_ id: ItemID) throws {
        try database.execute("DELETE FROM items WHERE id = ?", .blob(id.bytes))
    }

    /// Returns the items that the complete listing, which has just ended, did not contain.
    func unlisted(_ listing: Int64) throws -> [StoredItem] {
        try database.rows(
            "SELECT \(Self.itemColumns) FROM items WHERE listing <> ?", .integer(listing), decode: Self.item)
    }

    /// Calls `body` with the items that the complete listing contained.
    func forEachContent(listed listing: Int64, _ body: (ItemID, ItemContent) -> Void) throws {
        try database.forEach(
            "SELECT id, collection, format, iterations, title, body FROM items WHERE listing = ?", [.integer(listing)]
        ) { body(try Self.id($0, 0), try Self.content($0, 1)) }
    }

    /// Records that a listing contained the item without a change.
    func setListed(_ id: ItemID, _ listing: Int64) throws {
        try database.execute(
            "UPDATE items SET listing = ?, behind = NULL WHERE id = ?", .integer(listing), .blob(id.bytes))
    }

    /// Records that the server has a later version, which cannot be opened here.
    func setBehind(_ id: ItemID, _ revision: Revision) throws {
        try database.execute(
            "UPDATE items SET behind = ? WHERE id = ?", .integer(revision.number), .blob(id.bytes))
    }

    /// Returns true when the server has a version of some item that cannot be opened here and is not in the store.
    func hasItemsBehind() throws -> Bool {
        try !database.rows("SELECT 1 FROM items WHERE behind IS NOT NULL LIMIT 1", decode: { _ in true }).isEmpty
    }

    func itemCount() throws -> Int64 {
        try database.rows("SELECT count(*) FROM items") { $0.integer(0) ?? 0 }.first ?? 0
    }

    /// Returns the number of items on the server that were opened here.
    func openedCount() throws -> Int {
        Int(try database.rows("SELECT count(*) FROM items WHERE edit <> 0") { $0.integer(0) ?? 0 }.first ?? 0)
    }

    // MARK: Deletions

    /// Returns true when deletions wait for approval: of items, or of files in the last round of a folder.
    func holdsDeletions() throws -> Bool {
        if try number(.held) != nil { return true }
        return try !database.rows("SELECT 1 FROM folders WHERE held > 0 LIMIT 1", decode: { _ in true }).isEmpty
    }

    /// Stores the content that a tombstone removes.
    func trash(_ item: StoredItem, at moment: Date) throws {
        try noteVersion(item.id, item.content.body.bytes)
        if let known = try trashed(item.id), known.content != item.content {
            try keepReplaced(item.id, known.content, edit: known.edit)
        }
        try database.execute(
            """
            INSERT OR REPLACE INTO trash (id, collection, format, iterations, title, body, edit, removed_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """, .blob(item.id.bytes), .text(item.content.collection), .text(item.content.format),
            .optional(item.content.iterations.map(Int64.init)), .optional(item.content.title?.bytes),
            .blob(item.content.body.bytes), .integer(Int64(bitPattern: item.edit)),
            .integer(Int64(moment.timeIntervalSince1970)))
    }

    func trashed(_ id: ItemID) throws -> StoredItem? {
        try database.rows(
            "SELECT id, 0, collection, format, iterations, title, body, edit, NULL FROM trash WHERE id = ?",
            .blob(id.bytes),
            decode: Self.item
        ).first
    }

    func removeFromTrash(_ id: ItemID) throws {
        try database.execute("DELETE FROM trash WHERE id = ?", .blob(id.bytes))
    }

    // MARK: Tombstones

    /// Replaces an item by a record of its tombstone.
    func storeTombstone(_ id: ItemID, _ deletion: Revision, at moment: Date) throws {
        let edit = try item(id).flatMap { $0.isSealed ? nil : $0.edit }
        try removeItem(id)
        try database.execute(
            """
            INSERT INTO graves (id, revision, edit, noted_at) VALUES (?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET revision = max(revision, excluded.revision),
                edit = coalesce(excluded.edit, edit), noted_at = excluded.noted_at
            """, .blob(id.bytes), .integer(deletion.number), .optional(edit.map(Int64.init(bitPattern:))),
            .integer(Int64(moment.timeIntervalSince1970)))
    }

    func tombstone(_ id: ItemID) throws -> Tombstone? {
        try database.rows("SELECT revision, edit FROM graves WHERE id = ?", .blob(id.bytes)) { row in
            guard let revision = row.integer(0) else { throw StoreError.damaged }
            return Tombstone(deletion: Revision(revision), edit: row.integer(1).map(UInt64.init(bitPattern:)))
        }.first
    }

    // MARK: Notices

    func note(_ kind: Notice.Kind, _ item: ItemID? = nil, other: ItemID? = nil) throws {
        // Each kind is stored once for an item.
        let known = try database.rows(
            "SELECT 1 FROM notices WHERE kind = ? AND item IS ? AND other IS ?", .text(kind.rawValue),
            .optional(item?.bytes), .optional(other?.bytes)
        ) { _ in true }
        guard known.isEmpty else { return }
        try database.execute(
            "INSERT INTO notices (kind, item, other, noticed_at) VALUES (?, ?, ?, ?)", .text(kind.rawValue),
            .optional(item?.bytes), .optional(other?.bytes), .integer(Int64(Date().timeIntervalSince1970)))
    }

    /// Notes passkeys that a change of the keys is about to stop from unlocking. The notice gets another number, so
    /// that further passkeys are reported, too. The state before the change is kept until ``keepStopped()`` or
    /// ``takeBackStopped()``.
    func noteStopped(_ passkeys: [Base64URLBytes]) throws {
        try transaction {
            let known = try stoppedNotice()
            if try fact(.stoppedBefore) == nil {
                try set(.stoppedBefore, [UInt8](JSONEncoder().encode(known.map { [$0] } ?? [])))
            }
            let all = (known?.passkeys ?? []).filter { !passkeys.contains($0) } + passkeys
            // An account has at most so many. A hostile server can name others each time.
            try set(.stoppedPasskeys, [UInt8](JSONEncoder().encode(all.suffix(PasskeyKeys.limit))))
            // The earlier one is removed afterwards. Otherwise SQLite uses its number again.
            try insertStopped(nil, at: Int64(Date().timeIntervalSince1970))
            if let known { try forgetNotice(known.number) }
        }
    }

    /// Ends a change that was applied, or that has an uncertain outcome.
    func keepStopped() throws { try set(.stoppedBefore, nil) }

    /// Ends a change that was not applied: the notice is the one before it.
    func takeBackStopped() throws {
        try transaction {
            guard let bytes = try fact(.stoppedBefore) else { return }
            try set(.stoppedBefore, nil)
            // The user may have removed it meanwhile.
            guard try stoppedNotice() != nil else { return }
            let before = try JSONDecoder().decode([StoppedNotice].self, from: Data(bytes)).first
            try forgetNotices(.passkeysStoppedUnlocking)
            guard let before else { return }
            try insertStopped(before.number, at: before.noticedAt)
            try set(.stoppedPasskeys, [UInt8](JSONEncoder().encode(before.passkeys)))
        }
    }

    /// The notice of ``Notice/Kind/passkeysStoppedUnlocking``.
    private struct StoppedNotice: Codable {
        let number: Int64
        let noticedAt: Int64
        let passkeys: [Base64URLBytes]
    }

    private func stoppedNotice() throws -> StoppedNotice? {
        try database.rows(
            "SELECT number, noticed_at FROM notices WHERE kind = ?",
            .text(Notice.Kind.passkeysStoppedUnlocking.rawValue)
        ) { row in
            guard let number = row.integer(0), let moment = row.integer(1) else { throw StoreError.damaged }
            return StoppedNotice(number: number, noticedAt: moment, passkeys: try stoppedPasskeys())
        }.last
    }

    /// - Parameter number: Nil for the next one.
    private func insertStopped(_ number: Int64?, at moment: Int64) throws {
        try database.execute(
            "INSERT INTO notices (number, kind, noticed_at) VALUES (?, ?, ?)", .optional(number),
            .text(Notice.Kind.passkeysStoppedUnlocking.rawValue), .integer(moment))
    }

    private func stoppedPasskeys() throws -> [Base64URLBytes] {
        guard let ids = try fact(.stoppedPasskeys) else { return [] }
        return try JSONDecoder().decode([Base64URLBytes].self, from: Data(ids))
    }

    /// The number of the latest notice, which grows with each; nil when there is none.
    func lastNotice() throws -> Int64? {
        try database.rows("SELECT max(number) FROM notices") { $0.integer(0) }.first ?? nil
    }

    /// Returns the notices. Those of an unknown kind belong to a later kit, and stay in the store.
    func notices() throws -> [Notice] {
        try database.rows("SELECT number, kind, item, other FROM notices ORDER BY number") { row -> Notice? in
            guard let number = row.integer(0), let name = row.text(1) else { throw StoreError.damaged }
            guard let kind = Notice.Kind(rawValue: name) else { return nil }
            return Notice(
                number: number, kind: kind, item: row.blob(2).flatMap { ItemID(bytes: $0) },
                other: row.blob(3).flatMap { ItemID(bytes: $0) },
                passkeys: kind == .passkeysStoppedUnlocking ? try stoppedPasskeys() : [])
        }.compactMap(\.self)
    }

    func forgetNotice(_ number: Int64) throws {
        try database.execute("DELETE FROM notices WHERE number = ?", .integer(number))
    }

    /// Removes the notices about rejected changes of an item.
    func forgetRefusals(of item: ItemID) throws {
        let kinds = [Notice.Kind.quotaExceeded, .refused, .unreadableChange].map(\.rawValue)
        try database.execute(
            "DELETE FROM notices WHERE item = ? AND kind IN (?, ?, ?)", .blob(item.bytes), .text(kinds[0]),
            .text(kinds[1]), .text(kinds[2]))
    }

    /// Removes the notices of a kind that has ended.
    func forgetNotices(_ kind: Notice.Kind) throws {
        try database.execute("DELETE FROM notices WHERE kind = ?", .text(kind.rawValue))
    }

    // MARK: Decoding

    static func id(_ row: SQLiteRow, _ column: Int32) throws -> ItemID {
        guard let id = row.blob(column).flatMap({ ItemID(bytes: $0) }) else { throw StoreError.damaged }
        return id
    }

    private static func item(_ row: SQLiteRow) throws -> StoredItem {
        guard let revision = row.integer(1), let edit = row.integer(7) else { throw StoreError.damaged }
        return StoredItem(
            id: try id(row, 0), revision: Revision(revision), content: try content(row, 2),
            edit: UInt64(bitPattern: edit), judgedAt: row.integer(8))
    }

    /// Decodes collection, format, iterations, title and body, starting at a column.
    static func content(_ row: SQLiteRow, _ first: Int32) throws -> ItemContent {
        guard let collection = row.text(first), let format = row.text(first + 1), let body = row.blob(first + 4) else {
            throw StoreError.damaged
        }
        return ItemContent(
            collection: collection, format: format, iterations: row.integer(first + 2).map { Int($0) },
            title: row.blob(first + 3), body: body)
    }
}

/// The facts in the store beside items.
enum StoreFact: String {
    case account, userid, server, saltPrefix, iterations
    /// The keyring on the server, its revision and its counter.
    case keyring, keyringRevision, keyringCounter
    /// A digest of that keyring's content: two keyrings with equal counters and different content are a rollback.
    case keyringDigest
    /// Digests of the keys of passkeys in that keyring, 32 bytes each.
    case passkeys
    /// The credential ids of ``Notice/Kind/passkeysStoppedUnlocking``.
    case stoppedPasskeys
    /// The notice about them before a change without a certain outcome; see ``Store/noteStopped(_:)``.
    case stoppedBefore
    /// The highest counter of a keyring that was ever sent. It is stored before the keyring is sent.
    case keyringSent
    /// Digests of data keys that a rotation has retired, 16 bytes each. Later keyrings do not seal with them.
    case retiredKeys
    /// Session token, device token and the keys of an open vault, sealed with the device's key. See ``DeviceSecrets``.
    case token, deviceToken, openKeys
    /// The same keys in the format of an earlier version, with the password key.
    case openKeyring
    /// The password of the ``UnconfirmedChange``, sealed with the device key.
    case unconfirmedPassword
    /// The device key that replaces the one in the key store, sealed with that one.
    case nextDeviceKey
    case cursor, revisionBase, listing, lastEventID
    /// Set during a complete listing after a database rollback.
    case comparing
    /// Set while deletions wait for approval.
    case held
    /// Set when another device's copy of a version has arrived, until it was compared with the changes that were sent.
    case copies
    /// The ids of the keyring's data keys, 4 bytes each. Sealed bytes contain them, too.
    case keyIDs
    /// Set while the store has content under a key that the keyring does not contain.
    case unread
    /// The ``ItemSealing/stamp`` with which the versions of a shared vault were last judged.
    case judgedBy
    /// The rotation that this device has opened and whose end was not received.
    case rotation
    /// The ``UnconfirmedChange``.
    case unconfirmedChange
    /// The time at which this device last requested the account's deletion (seconds since 1970), while its outcome is
    /// uncertain. A valid session shows that it failed.
    case leaving
    /// The plan's limit of one item, from the last reply of the server.
    case itemBytes
    /// The age of the store at the last sweep of attachments' chunks.
    case sweptAt
    /// The largest size of a batch, in bytes, while the connection is slow.
    case batchBytes
    /// The largest number of changes in a page, while the connection is slow.
    case pageChanges
    /// Set when the server had every named chunk, until a missing one is noticed.
    case chunksWhole
    /// Set when the server has lost chunks, until copies of them wait to be sent.
    case chunksLost
    /// The age of the store, and the moment at which it was last advanced (seconds since 1970); see
    /// ``Store/advanceAge(to:)``.
    case age, agedAt
    /// The age at which expired content was last removed.
    case agedTo
    /// The name of this store in the markers of folders, and its former names; see ``Store/renewIdentity()``.
    case storeID, formerStoreIDs
    /// The identity of the store's file when the store was last opened (``StoreFileIdentity``).
    case fileNumber, fileBirth
    /// Set from a sign-out until the device key is removed.
    case isSignedOut

    /// True for a fact that each owner of items has. Others are those of the account and of the whole store.
    var isOfOwner: Bool {
        switch self {
        case .cursor, .revisionBase, .listing, .lastEventID, .comparing, .held, .copies, .unread, .judgedBy,
            .batchBytes,
            .pageChanges, .itemBytes, .sweptAt, .agedTo, .chunksWhole, .chunksLost:
            true
        default: false
        }
    }
}
