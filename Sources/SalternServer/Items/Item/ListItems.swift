internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `GET /v1/items`: lists live items in the order of their ids, in pages.
///
/// A page longer than one window is fetched while it is sent. A page of a collection may be empty and still have a next
/// page, because each page scans a limited number of items.
struct ListItems: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let collection: CollectionName? = try request.query.optional("collection")
        let fields: ItemFields = try request.query.optional("fields") ?? .all
        let page: ItemPage? = try request.query.optional("page")
        if let page, page.collection != collection || page.fields != fields {
            throw Problem(
                .badRequest, "invalid_parameter",
                detail: "Send `page` with the same `collection` and `fields` as the first page.", field: "page")
        }
        var range = ItemRange(first: page?.first ?? ItemPage.lowest, collection: collection, limit: Int64(limit))
        if collection != nil { range.sliceEnd = try await items.read(FindSliceEnd(first: range.first)).first }
        switch fields {
        case .all:
            let rows = try await items.read(FindItems(range: range, byteLimit: PageSize.windowByteLimit))
            let page = ItemListing(
                reader: items.reader, range: range,
                first: rows)
            return page.response()
        case .meta:
            let rows = try await items.read(FindItemHeaders(range: range))
            let next = range.nextPage(
                after: rows.last.flatMap { $0.isFollowed ? $0.header.id : nil }, fields: .meta)
            return .json(capacity: 256 + rows.count * 224) { writer in
                writer.object { writer in
                    writer.array("items") { writer in
                        for row in rows { writer.object { writer in row.header.write(to: &writer) } }
                    }
                    if let next { writer.member("nextPage", next.text) }
                }
            }
        }
    }
}

/// One page of items whose first window has been read.
private struct ItemListing: Sendable {
    let reader: ItemReader
    let range: ItemRange
    let first: [FindItems.Row]

    /// Returns the page, streamed if it has more than one window.
    func response() -> Response {
        if PageWindows.isWhole(first.map(\.item), isFollowed: first.last?.isFollowed ?? false, range.limit) {
            return .json(capacity: first.reduce(256) { $0 + $1.item.item.jsonCapacity }) { writer in
                writer.object { writer in
                    writer.array("items") { writer in
                        for row in first { writer.object { writer in row.item.item.write(to: &writer) } }
                    }
                    writeNext(after: first.last, to: &writer)
                }
            }
        }
        return Response(
            status: .ok, fields: ["Content-Type": "application/json"],
            body: .stream(ResponseStream(isOpenEnded: false) { body in try await write(to: body) }))
    }

    private func writeNext(after last: FindItems.Row?, to writer: inout JSONWriter) {
        let last = last.flatMap { $0.isFollowed ? $0.item.item.id : nil }
        if let next = range.nextPage(after: last, fields: .all) { writer.member("nextPage", next.text) }
    }

    private func write(to body: any ResponseBodyWriter) async throws {
        var output = JSONOutput(body)
        output.writer.beginObject()
        output.writer.name("items")
        output.writer.beginArray()
        var window = first
        var size = PageWindows(limit: range.limit)
        var last: FindItems.Row?
        while !window.isEmpty {
            for row in window where size.takes(row.item.byteCount) {
                output.writer.beginObject()
                try await row.item.write(to: &output, reader)
                output.writer.endObject()
                try await output.flushIfLarge()
                last = row
            }
            guard let last, last.isFollowed, size.hasRoom, let page = ItemPage(after: last.item.item.id) else { break }
            let rest = ItemRange(
                first: page.first, collection: range.collection, limit: size.remaining, sliceEnd: range.sliceEnd)
            // A page may end anywhere: rows that cannot be read now belong to the next one.
            window = (try? await reader.read(FindItems(range: rest, byteLimit: size.windowByteLimit))) ?? []
        }
        output.writer.endArray()
        writeNext(after: last, to: &output.writer)
        output.writer.endObject()
        try await output.flush()
    }
}

/// The fields of each item in a listing.
enum ItemFields: UInt8, Sendable, PathParameterConvertible {
    case all = 0
    /// The properties without the sealed bytes.
    case meta = 1

    init?(pathParameter text: String) {
        guard text == "meta" else { return nil }
        self = .meta
    }
}

/// The start of a page of items in a listing. Clients treat its text as opaque.
struct ItemPage: PathParameterConvertible, Equatable {
    /// The lowest id that the page may contain.
    let first: ItemID
    /// The collection of the listing.
    let collection: CollectionName?
    let fields: ItemFields

    /// The start of the first page.
    static let lowest = ItemID(.zero)

    /// Identifies this kind of token and its version.
    private static let tag: UInt8 = 0x01
    private static let fixedByteCount = 18

    /// Creates the page behind an item. Nil behind the highest possible id.
    init?(after last: ItemID, collection: CollectionName? = nil, fields: ItemFields = .all) {
        let (low, isCarried) = last.uuid.low.addingReportingOverflow(1)
        if isCarried, last.uuid.high == .max { return nil }
        first = ItemID(UUID(high: last.uuid.high &+ (isCarried ? 1 : 0), low: low))
        self.collection = collection
        self.fields = fields
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count >= Self.fixedByteCount, bytes[0] == Self.tag,
            let uuid = UUID(bytes: Array(bytes[1..<17])), let fields = ItemFields(rawValue: bytes[17])
        else { return nil }
        first = ItemID(uuid)
        self.fields = fields
        if bytes.count == Self.fixedByteCount {
            collection = nil
        } else {
            guard let name = CollectionName(String(decoding: bytes[18...], as: UTF8.self)) else { return nil }
            collection = name
        }
    }

    var text: String {
        Base64URL.encodeToString(
            [Self.tag] + first.uuid.bytes + [fields.rawValue] + Array((collection?.name ?? "").utf8))
    }
}

/// The live items that a page of a listing may contain.
struct ItemRange: Sendable {
    let first: ItemID
    /// Nil for items of all collections.
    let collection: CollectionName?
    let limit: Int64
    /// The end of the scanned slice of the account. Nil up to the last item.
    var sliceEnd: ItemID?

    private var last: ItemID { sliceEnd ?? ItemID(UUID(high: .max, low: .max)) }

    /// Selects one row more than the limit, of the alias `stored`, in the order of ids along the primary key.
    /// Collections have no index: it would cost each write more than it saves a listing of one account.
    static let condition: AccountSQL<Self> = """
        stored.account_id = \(.account) AND stored.item_id >= \(\.first) AND stored.item_id <= \(\.last)
                AND NOT stored.deleted
                AND (\(\.collection?.name)::text IS NULL OR stored.collection = \(\.collection?.name))
            ORDER BY stored.item_id LIMIT \(\.limit) + 1
        """

    /// Returns the start of the next page, if there is one.
    ///
    /// - Parameter last: The page's last item if another one follows within the range.
    func nextPage(after last: ItemID?, fields: ItemFields) -> ItemPage? {
        (last ?? sliceEnd).flatMap { ItemPage(after: $0, collection: collection, fields: fields) }
    }
}

/// Finds the end of a slice of an account's items, including tombstones. Returns no row if fewer follow. A listing of a
/// collection scans one slice for each page, so that no statement scans the whole account for a few rows.
struct FindSliceEnd: ItemRead {
    typealias Row = ItemID

    let first: ItemID

    static let size: Int64 = 5_000
    static let sql: AccountSQL<Self> = """
        SELECT i.item_id FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id >= \(\.first)
        ORDER BY i.item_id OFFSET \(size) - 1 LIMIT 1
        """
}

/// Finds live items in the order of ids, as many as the range and `byteLimit` allow, but at least one.
struct FindItems: ItemRead {
    let range: ItemRange
    /// Maximum of sealed bytes in total.
    let byteLimit: Int64

    struct Row: Sendable {
        let item: ItemInParts
        /// True if another item follows the page's last one.
        let isFollowed: Bool
    }

    /// PostgreSQL computes the lengths of externally stored columns without reading them.
    static let sql: AccountSQL<Self> = """
        SELECT \(ItemInParts.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER by_id AS position, count(*) OVER () AS found,
                sum(\(SealedSize.bytes(of: "next"))) OVER by_id AS bytes
            FROM (SELECT stored.* FROM saltern.items stored WHERE \(ItemRange.condition, of: \.range)) next
            WINDOW by_id AS (ORDER BY next.item_id ROWS UNBOUNDED PRECEDING)
        ) i
        WHERE i.position <= \(\.range.limit) AND (i.bytes <= \(\.byteLimit) OR i.position = 1)
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(item: try ItemInParts(row: &row), isFollowed: try row.next())
    }
}

/// Finds live items in the order of ids without reading their sealed bytes.
struct FindItemHeaders: ItemRead {
    let range: ItemRange

    struct Row: Sendable {
        let header: ItemHeader
        /// True if another item follows the page's last one.
        let isFollowed: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(ItemHeader.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER (ORDER BY next.item_id) AS position, count(*) OVER () AS found
            FROM (
                SELECT stored.item_id, stored.revision, stored.collection, stored.created_at, stored.updated_at
                FROM saltern.items stored WHERE \(ItemRange.condition, of: \.range)
            ) next
        ) i
        WHERE i.position <= \(\.range.limit)
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(header: try ItemHeader(row: &row), isFollowed: try row.next())
    }
}
