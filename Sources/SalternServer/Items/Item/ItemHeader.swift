internal import HTTPCore
internal import Postgres

/// The properties of a live item without its sealed bytes.
struct ItemHeader: DecodableRow {
    let id: ItemID
    let revision: Int64
    let collection: String
    let createdAt: Timestamp
    let updatedAt: Timestamp

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = "i.item_id, i.revision, i.collection, i.created_at, i.updated_at"

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        revision = try row.next()
        collection = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
    }

    /// Creates the header of an item that a short path has written.
    init(_ write: WriteItem, _ written: WrittenItem) {
        id = write.id
        revision = written.revision
        collection = written.collection
        createdAt = written.createdAt
        updatedAt = written.updatedAt
    }

    init(_ item: Item) {
        id = item.id
        revision = item.revision
        collection = item.collection
        createdAt = item.createdAt
        updatedAt = item.updatedAt
    }

    /// Writes the members.
    ///
    /// - Parameter isDeleted: True for a tombstone.
    func write(isDeleted: Bool = false, to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("revision", revision)
        writer.member("collection", collection)
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        writer.member("deleted", isDeleted)
    }
}
