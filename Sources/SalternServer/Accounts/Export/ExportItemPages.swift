internal import HTTPCore
internal import Postgres

/// SQL for pages of records with sealed bytes.
enum SealedPage {
    /// Selects rows of a table behind a key, within the limits of a page, under the alias `i`.
    ///
    /// Clients choose identifiers, so a row may have the lowest key. `isFirst` includes that row in the first page,
    /// while the first condition keeps the index scan along the key.
    static func sql<Root>(
        _ columns: SQLFragment, of table: SQLFragment, key: [SQLFragment], at bounds: AccountSQL<Root>,
        isFirst: AccountSQL<Root>
    ) -> AccountSQL<Root> {
        let names = key.map { "stored.\($0)" as SQLFragment }.joined(separator: ", ")
        let next = key.map { "next.\($0)" as SQLFragment }.joined(separator: ", ")
        return """
            SELECT \(columns) FROM (
                SELECT next.*, row_number() OVER by_key AS position,
                    sum(\(SealedSize.bytes(of: "next"))) OVER by_key AS bytes
                FROM (
                    SELECT stored.* FROM \(table) stored
                    WHERE stored.account_id = \(.account) AND (\(names)) >= (\(bounds))
                        AND ((\(names)) > (\(bounds)) OR \(isFirst))
                    ORDER BY \(names) LIMIT \(ExportLimits.rows)
                ) next
                WINDOW by_key AS (ORDER BY \(next) ROWS UNBOUNDED PRECEDING)
            ) i
            WHERE i.bytes <= \(ExportLimits.bytes) OR i.position = 1
            ORDER BY i.position
            """
    }
}

extension ExportedPage {
    fileprivate var isFirst: Bool { after == nil }
}

extension ExportedPage where Key == ItemID {
    fileprivate var bound: ItemID { after ?? ItemPage.lowest }
}

/// The items and tombstones of an account or vault in one pass, so that each appears once.
struct ExportItems: ExportedPage, ItemRead {
    let after: ItemID?

    struct Row: ExportedRecord {
        let item: Item

        var type: String { item.content == nil ? "tombstone" : "item" }

        func write(to writer: inout JSONWriter) { item.write(to: &writer) }
    }

    static let sql: AccountSQL<Self> = SealedPage.sql(
        Item.columns, of: "saltern.items", key: ["item_id"], at: "\(\.bound)", isFirst: "\(\.isFirst)")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { Row(item: try Item(row: &row)) }

    static func key(of row: Row) -> ItemID { row.item.id }
}

/// The kept contents of an account's or vault's deleted items.
struct ExportDeletedContents: ExportedPage, ItemRead {
    let after: ItemID?

    struct Row: ExportedRecord {
        let id: ItemID
        let collection: String
        let createdAt: Timestamp
        let expiresAt: Timestamp
        let content: Item.Content

        let type = "deletedContent"

        func write(to writer: inout JSONWriter) {
            writer.member("id", id)
            writer.member("collection", collection)
            writer.member("createdAt", createdAt)
            writer.member("expiresAt", expiresAt)
            content.write(to: &writer)
        }
    }

    static let sql: AccountSQL<Self> = SealedPage.sql(
        "i.item_id, i.collection, i.created_at, i.expires_at, \(Item.Content.columns)", of: "saltern.deleted_contents",
        key: ["item_id"], at: "\(\.bound)", isFirst: "\(\.isFirst)")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            id: try row.next(), collection: try row.next(), createdAt: try row.next(), expiresAt: try row.next(),
            content: try Item.Content(row: &row))
    }

    static func key(of row: Row) -> ItemID { row.id }
}

/// The older versions of an account's or vault's items.
struct ExportVersions: ExportedPage, ItemRead {
    let after: Key?

    struct Key: Sendable {
        let itemID: ItemID
        let revision: Int64
    }

    struct Row: ExportedRecord {
        let version: Item
        let replacedAt: Timestamp
        let expiresAt: Timestamp

        let type = "itemVersion"

        func write(to writer: inout JSONWriter) {
            writer.member("id", version.id)
            writer.member("revision", version.revision)
            writer.member("collection", version.collection)
            writer.member("createdAt", version.createdAt)
            writer.member("updatedAt", version.updatedAt)
            writer.member("replacedAt", replacedAt)
            writer.member("expiresAt", expiresAt)
            version.content?.write(to: &writer)
        }
    }

    static let sql: AccountSQL<Self> = SealedPage.sql(
        "\(Item.columns), i.replaced_at, i.expires_at", of: "saltern.replaced_contents", key: ["item_id", "revision"],
        at: "\(\.bound.itemID), \(\.bound.revision)", isFirst: "\(\.isFirst)")

    private var bound: Key { after ?? Key(itemID: ItemPage.lowest, revision: 0) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(version: try Item(row: &row), replacedAt: try row.next(), expiresAt: try row.next())
    }

    static func key(of row: Row) -> Key { Key(itemID: row.version.id, revision: row.version.revision) }
}

/// The items that the account has staged for rotations.
struct ExportStagedItems: ExportedPage {
    let after: Key?

    struct Key: Sendable {
        let rotationID: UUID
        let itemID: ItemID
    }

    struct Row: ExportedRecord {
        let rotationID: UUID
        let id: ItemID
        let baseRevision: Int64
        let content: Item.Content

        let type = "stagedItem"

        func write(to writer: inout JSONWriter) {
            writer.member("rotationId", rotationID.description)
            writer.member("id", id)
            writer.member("baseRevision", baseRevision)
            content.write(to: &writer)
        }
    }

    static let sql: AccountSQL<Self> = SealedPage.sql(
        "i.rotation_id, i.item_id, i.base_revision, \(Item.Content.columns)", of: "saltern.rotation_items",
        key: ["rotation_id", "item_id"], at: "\(\.bound.rotationID), \(\.bound.itemID)", isFirst: "\(\.isFirst)")

    private var bound: Key { after ?? Key(rotationID: .zero, itemID: ItemPage.lowest) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            rotationID: try row.next(), id: try row.next(), baseRevision: try row.next(),
            content: try Item.Content(row: &row))
    }

    static func key(of row: Row) -> Key { Key(rotationID: row.rotationID, itemID: row.id) }
}
