internal import HTTPCore
internal import Postgres

/// An item with only the first part of long values. A client that reads slowly, or stops reading, therefore cannot make
/// the server hold more.
struct ItemInParts: DecodableRow {
    /// Title and body, whole or their first parts.
    let item: Item
    private let titleCount: Int
    private let bodyCount: Int
    private let source: Source

    /// The table with the rest of a long item.
    enum Source { case items, replacedContents }

    /// The number of sealed bytes fetched at once. A multiple of three, so that parts of base64 need no padding.
    static let partSize = 98_304

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = """
        i.item_id, i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations,
            \(sealedColumns("i"))
        """

    /// The last columns of ``columns``, of an alias. PostgreSQL reads a part of an externally stored value without the
    /// rest.
    ///
    /// - Parameter condition: If it is false, the columns are those of a tombstone.
    static func sealedColumns(_ alias: SQLFragment, when condition: SQLFragment = "true") -> SQLFragment {
        let names: [SQLFragment] = ["title", "body"]
        let parts = names.map { name -> SQLFragment in
            """
            CASE WHEN NOT (\(condition)) THEN NULL
                    WHEN octet_length(\(alias).\(name)) > \(partSize) THEN substring(\(alias).\(name) FROM 1 FOR \(partSize))
                    ELSE \(alias).\(name) END
            """
        }
        let counts = names.map { name -> SQLFragment in
            "CASE WHEN \(condition) THEN coalesce(octet_length(\(alias).\(name)), 0) ELSE 0 END"
        }
        return (parts + counts).joined(separator: ", ")
    }

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) { try self.init(row: &row, of: .items) }

    /// Reads the columns of ``columns`` from a row of `source`.
    init(row: inout RowReader, of source: Source) throws(PostgresError) {
        self.source = source
        item = try Item(row: &row)
        titleCount = Int(try row.next(Int32.self))
        bodyCount = Int(try row.next(Int32.self))
    }

    /// The total of sealed bytes.
    var byteCount: Int { titleCount + bodyCount }

    /// The sealed bytes of the body.
    var bodyByteCount: Int { bodyCount }

    /// True if no part is missing.
    var isWhole: Bool {
        guard let content = item.content else { return true }
        return content.body.count == bodyCount && (content.title?.count ?? 0) == titleCount
    }

    /// Writes the item's members and fetches missing parts.
    ///
    /// - Throws: `ResponseStreamEnded` if the item has changed meanwhile, because the rest belongs to another revision.
    func write(to output: inout JSONOutput, _ reader: ItemReader) async throws {
        guard !isWhole, let content = item.content else { return item.write(to: &output.writer) }
        item.writeHeader(to: &output.writer)
        content.writeHeader(to: &output.writer)
        if let title = content.title {
            try await output.member("title", base64: title, of: titleCount) {
                try await part(of: .title, at: $0, reader)
            }
        }
        try await output.member("body", base64: content.body, of: bodyCount) {
            try await part(of: .body, at: $0, reader)
        }
    }

    /// Writes the body as bytes and fetches missing parts.
    func writeBody(to body: any ResponseBodyWriter, _ reader: ItemReader) async throws {
        var written = 0
        var next = item.content?.body ?? []
        while true {
            try await body.write(next)
            written += next.count
            if written >= bodyCount { return }
            next = try await part(of: .body, at: written, reader)
        }
    }

    private func part(of column: FindItemPart.Column, at offset: Int, _ reader: ItemReader) async throws -> [UInt8] {
        let find = FindItemPart(id: item.id, revision: item.revision, column: column, offset: offset)
        let parts =
            switch source {
            case .items: try await reader.read(find)
            case .replacedContents: try await reader.read(FindVersionPart(part: find))
            }
        guard let part = parts.first, !part.isEmpty else { throw ResponseStreamEnded() }
        return part
    }
}

/// An item in a reply, with the reader for missing parts.
struct ItemInReply: Sendable {
    let found: ItemInParts
    let reader: ItemReader

    var item: Item { found.item }

    /// Writes the item as an object.
    func write(to output: inout JSONOutput) async throws {
        output.writer.beginObject()
        try await found.write(to: &output, reader)
        output.writer.endObject()
    }

    /// Returns the item as a reply, streamed if parts are missing.
    func response(fields: consuming HTTPFields) -> Response {
        guard !found.isWhole else {
            return .json(fields: fields, capacity: item.jsonCapacity) { writer in
                writer.object { writer in item.write(to: &writer) }
            }
        }
        fields.set("Content-Type", "application/json")
        return Response(
            status: .ok, fields: fields,
            body: .stream(
                ResponseStream(isOpenEnded: false) { body in
                    var output = JSONOutput(body)
                    try await write(to: &output)
                    try await output.flush()
                }))
    }
}

/// Finds a part of an item's title or body. Returns no row if the item has another revision.
struct FindItemPart: ItemRead {
    typealias Row = [UInt8]

    let id: ItemID
    let revision: Int64
    let column: Column
    let offset: Int

    enum Column { case title, body }

    private var isTitle: Bool { column == .title }
    private var start: Int32 { Int32(offset) }

    static let sql: AccountSQL<Self> = "\(part(of: "saltern.items i")) AND NOT i.deleted"

    /// Reads the part from a table with the alias `i`.
    static func part(of table: SQLFragment) -> AccountSQL<Self> {
        """
        SELECT substring(CASE WHEN \(\.isTitle) THEN i.title ELSE i.body END
            FROM \(\.start) + 1 FOR \(ItemInParts.partSize))
        FROM \(table)
        WHERE i.account_id = \(.account) AND i.item_id = \(\.id) AND i.revision = \(\.revision)
        """
    }
}
