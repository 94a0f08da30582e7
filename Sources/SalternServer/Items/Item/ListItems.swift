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
