internal import HTTPCore
internal import Postgres

/// `GET /v1/items/{id}`: returns one live item, 304 if the client has its revision, or 412 if the precondition names
/// another one. The reply is JSON, or the sealed body as bytes if the client prefers that. A long item is fetched while
/// it is sent; if it is replaced meanwhile, the reply ends early.
///
/// `GET /v1/items/{id}/body`: returns the bytes for any `Accept`.
struct ShowItem: ItemEndpoint {
    private static let forms: [StaticString] = ["application/json", "application/octet-stream"]
    private let isAlwaysBytes: Bool

    /// - Parameter isAlwaysBytes: True for the route with bytes only.
    init(isAlwaysBytes: Bool = false) { self.isAlwaysBytes = isAlwaysBytes }

    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let isBytes = try isAlwaysBytes || Self.wantsBytes(request)
        guard let found = try await items.read(FindItem(id: id)).first else { throw Problem.notFound }
        return try reply(to: request, found, isBytes: isBytes, items.reader)
    }

    private func reply(
        to request: Request, _ found: ItemInParts, isBytes: Bool, _ reader: ItemReader
    ) throws -> Response {
        let item = found.item
        guard let content = item.content else { throw Problem.notFound }
        var fields = HTTPFields()
        fields.append("ETag", item.entityTag)
        if !isAlwaysBytes { fields.append("Vary", "Accept") }
        switch ReadCondition(request.head.fields, revision: item.revision) {
        case .met: break
        case .failed: throw ItemProblem.preconditionFailed(current: ItemInReply(found: found, reader: reader))
        case .notModified: return Response(status: .notModified, fields: fields)
        }
        guard !isBytes else {
            // The properties needed to open the bytes. The title is not, and can be longer than a field may be.
            fields.set("Content-Type", "application/octet-stream")
            fields.set("Saltern-Format", content.format)
            fields.set("Saltern-Collection", item.collection)
            if let iterations = content.iterations { fields.set("Saltern-Iterations", String(iterations)) }
            guard content.body.count < found.bodyByteCount else {
                return Response(status: .ok, fields: fields, body: .bytes(ZeroizingBuffer(content.body)))
            }
            return Response(
                status: .ok, fields: fields,
                body: .stream(
                    ResponseStream(isOpenEnded: false, length: found.bodyByteCount) { body in
                        try await found.writeBody(to: body, reader)
                    }))
        }
        return ItemInReply(found: found, reader: reader).response(fields: consume fields)
    }
}

extension ShowItem {
    private static func wantsBytes(_ request: Request) throws -> Bool {
        guard let form = try AcceptList.best(of: forms, in: request.head.fields) else { throw NotAcceptable() }
        return form == 1
    }
}

/// The error of a client that accepts no form of an item.
struct NotAcceptable: ProblemConvertible {
    var problem: Problem {
        Problem(
            .notAcceptable, "not_acceptable",
            detail: "Accept must allow application/json or application/octet-stream.")
    }
}

/// Finds one live item, with only the first part of long values.
///
/// Costs 53 thousand instructions for an item of 1 KiB: one row by its key. PostgreSQL cuts long values, so no reply
/// holds more than a part.
struct FindItem: ItemRead {
    typealias Row = ItemInParts

    let id: ItemID

    static let sql: AccountSQL<Self> = """
        SELECT \(ItemInParts.columns) FROM saltern.items i
        WHERE i.account_id = \(.account) AND i.item_id = \(\.id) AND NOT i.deleted
        """
}

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
