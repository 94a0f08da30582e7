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

    /// The state of the store's file.
    var fileState: StoreFileState { database.fileState }

    /// Lets another process use it. Reads and writes fail until ``takeBack()``.
    /// - Returns: The state of the file before another process can write.
    @discardableResult
    func lend() -> StoreFileState { database.lend() }

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
            try keepReplaced(
                item.id, known.content, edit: known.edit, revision: known.revision, judgedAt: known.judgedAt)
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

    /// Starts a complete listing with the next page.
    func beginListing() throws {
        try set(.cursor, nil)
        try set(.listing, (number(.listing) ?? 0) + 1)
    }

    /// Returns the ids of the items on the server, in their order.
    func itemIDs(after id: ItemID?, limit: Int) throws -> [ItemID] {
        try ids(in: "items", after: id?.bytes ?? [], limit: limit)
    }

    /// Returns the ids in a table of items, in their order.
    func ids(in table: String, after id: [UInt8], limit: Int) throws -> [ItemID] {
        try database.rows(
            "SELECT id FROM \(table) WHERE id > ? ORDER BY id LIMIT ?", .blob(id), .integer(Int64(limit))
        ) { row in try Self.id(row, 0) }
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

    /// The items of which the server has a later version that cannot be opened here, or does not count.
    func itemsBehind() throws -> [(ItemID, Revision)] {
        try database.rows("SELECT id, behind FROM items WHERE behind IS NOT NULL ORDER BY id") {
            (try Self.id($0, 0), Revision($0.integer(1) ?? 0))
        }
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
    func holdsDeletions() throws -> Bool { try number(.held) != nil || !foldersHoldingDeletions().isEmpty }

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

/// An item in its last received state of the server.
struct StoredItem: Hashable, Sendable {
    var id: ItemID
    var revision: Revision
    var content: ItemContent
    /// The number of its edit; 0 for an item that was never opened here.
    var edit: UInt64
    /// The number of the log's latest entry when the version was accepted, in a shared vault.
    var judgedAt: Int64?

    /// True for an item that was never opened here.
    var isSealed: Bool { edit == 0 }
}

/// A record of an item whose tombstone the server has.
struct Tombstone: Hashable, Sendable {
    var deletion: Revision
    /// The number of the last edit on this device; nil when it had none.
    var edit: UInt64?
}

/// Permanent removal after a period. Periods are measured by the age of the store instead of the wall clock, which can
/// be wrong. The age is a count of seconds that grows with confirmed readings of the clock, by a limited amount each
/// time. A row ages from the first confirmed reading after it was stored.
extension Store {
    /// The longest time between two confirmed readings that counts, in seconds.
    static let ageStepLimit: Int64 = 7 * 86_400

    /// The shortest time between two readings that are stored, in seconds.
    private static let ageStepMinimum: Int64 = 3_600

    /// The seconds of the store's age after which trash and records of deleted items are removed.
    static let keptSeconds: Int64 = 30 * 86_400

    /// Tables whose rows are removed after a period, with the columns of their key and of the time that distinguishes
    /// rows.
    private static let agingTables = [
        ("trash", "id", "removed_at"), ("graves", "id", "noted_at"), ("versions", "number", "replaced_at"),
    ]

    /// Advances the age of the store with a reading of the clock that the server has confirmed.
    /// - Parameter moment: Seconds since 1970.
    /// - Returns: The age in seconds.
    func advanceAge(to moment: Int64) throws -> Int64 {
        let age = try number(.age) ?? 0
        if let last = try number(.agedAt), age > 0 {
            let step = moment.subtractingReportingOverflow(last)
            // A clock that was set back adds nothing. Later readings count from there.
            let counted = step.overflow ? 0 : min(max(step.partialValue, 0), Self.ageStepLimit)
            if (0..<Self.ageStepMinimum).contains(step.partialValue) && !step.overflow { return age }
            try set(.age, age + counted)
            try set(.agedAt, moment)
            return age + counted
        }
        try set(.age, 1)
        try set(.agedAt, moment)
        return 1
    }

    /// Removes trash, replaced versions and records of deleted items of this age.
    func removeAged(at age: Int64) throws {
        try removeAged(Self.agingTables, at: age)
    }

    /// Removes replaced versions of this age.
    func removeAgedVersions(at age: Int64) throws {
        try removeAged(Self.agingTables.filter { $0.0 == "versions" }, at: age)
    }

    private func removeAged(_ tables: [(String, String, String)], at age: Int64) throws {
        try database.transaction {
            for (table, key, stamp) in tables {
                try database.execute(
                    "INSERT OR IGNORE INTO aging (kind, key, stamp, since) SELECT ?, \(key), \(stamp), ? FROM \(table)",
                    .text(table), .integer(age))
                try database.execute(
                    """
                    DELETE FROM \(table) WHERE EXISTS (
                        SELECT 1 FROM aging a
                        WHERE a.kind = ?1 AND a.key = \(table).\(key) AND a.stamp = \(table).\(stamp) AND a.since <= ?2)
                    """, .text(table), .integer(age - Self.keptSeconds))
                try database.execute(
                    """
                    DELETE FROM aging WHERE kind = ?1 AND NOT EXISTS (
                        SELECT 1 FROM \(table) t WHERE t.\(key) = aging.key AND t.\(stamp) = aging.stamp)
                    """, .text(table))
            }
        }
    }

    // MARK: Chunks

    /// The location of a chunk that no item names.
    enum ChunkPlace: String {
        case server = "chunk"
        /// Its content waits on this device to be sent.
        case waiting = "waiting-chunk"
    }

    /// Records the age of the store at which a chunk was first found without a name.
    func noteUnnamed(_ id: ItemID, _ place: ChunkPlace = .server, at age: Int64) throws {
        try database.execute(
            "INSERT OR IGNORE INTO aging (kind, key, stamp, since) VALUES (?, ?, 0, ?)", .text(place.rawValue),
            .blob(id.bytes), .integer(age))
    }

    /// Records that an item names the chunk, or that it was deleted.
    func forgetUnnamed(_ id: ItemID, _ place: ChunkPlace = .server) throws {
        try database.execute("DELETE FROM aging WHERE kind = ? AND key = ?", .text(place.rawValue), .blob(id.bytes))
    }

    /// Returns, for each chunk without a name, the age of the store since which it has none.
    func unnamedChunks(_ place: ChunkPlace = .server) throws -> [ItemID: Int64] {
        let rows = try database.rows("SELECT key, since FROM aging WHERE kind = ?", .text(place.rawValue)) {
            (try Self.id($0, 0), $0.integer(1) ?? 0)
        }
        return Dictionary(rows) { _, last in last }
    }
}
