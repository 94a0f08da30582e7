internal import HTTPCore
internal import Postgres

/// Identifies an item. The client makes it.
typealias ItemID = Identifier<Item>

/// A stored item: content, or a tombstone.
struct Item: DecodableRow {
    let id: ItemID
    let revision: Int64
    let collection: String
    let createdAt: Timestamp
    let updatedAt: Timestamp
    /// The sealed content. Nil for a tombstone.
    let content: Content?

    struct Content: Sendable {
        let format: String
        let iterations: Int32?
        let title: [UInt8]?
        let body: [UInt8]
    }

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = """
        i.item_id, i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations, i.title, i.body
        """

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        revision = try row.next()
        collection = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
        let format: String? = try row.next()
        let iterations: Int32? = try row.next()
        let title = try row.nextBytes { $0.map { [UInt8]($0) } }
        let body = try row.nextBytes { $0.map { [UInt8]($0) } }
        if let format, let body {
            content = Content(format: format, iterations: iterations, title: title, body: body)
        } else {
            content = nil
        }
    }

    /// The revision as an entity tag (RFC 9110 §8.8.3).
    var entityTag: String { EntityTag.text(of: revision) }

    /// An upper bound of the JSON's length in bytes, for the writer's first allocation.
    var jsonCapacity: Int { 320 + ((content?.body.count ?? 0) + (content?.title?.count ?? 0)) * 4 / 3 }

    /// Writes the item's members.
    func write(to writer: inout JSONWriter) {
        writeHeader(to: &writer)
        content?.write(to: &writer)
    }

    /// Writes the members before the content.
    func writeHeader(to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("revision", revision)
        writer.member("collection", collection)
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        writer.member("deleted", content == nil)
    }
}

extension Item.Content {
    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = "i.format, i.iterations, i.title, i.body"

    /// Reads the columns of ``columns`` from a row with content.
    init(row: inout RowReader) throws(PostgresError) {
        format = try row.next()
        iterations = try row.next()
        title = try row.next()
        body = try row.next()
    }

    func write(to writer: inout JSONWriter) {
        writeHeader(to: &writer)
        if let title { writer.member("title", base64: title) }
        writer.member("body", base64: body)
    }

    /// Writes the members before the sealed bytes.
    func writeHeader(to writer: inout JSONWriter) {
        writer.member("format", format)
        if let iterations { writer.member("iterations", Int(iterations)) }
    }
}
