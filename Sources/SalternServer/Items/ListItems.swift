internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `GET /v1/items`: live items in the order of their identifiers, a page at a time.
struct ListItems: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let collection: CollectionName? = try request.query.optional("collection")
        let fields: ItemFields = try request.query.optional("fields") ?? .all
        let page: ItemPage? = try request.query.optional("page")
        if let page, page.collection != collection || page.fields != fields {
            throw Problem(
                .badRequest, "invalid_parameter",
                detail: "A page belongs to the collection and fields with which its listing began.", field: "page")
        }
        let range = ItemRange(first: page?.first ?? ItemPage.lowest, collection: collection, limit: Int64(limit))
        switch fields {
        case .all:
            let rows = try await authorization.read(FindItems(range: range, byteLimit: PageSize.byteLimit))
            let next = rows.last.flatMap { $0.isFollowed ? $0.item.id : nil }
            return Self.reply(rows, capacity: rows.reduce(256) { $0 + $1.item.jsonCapacity }, next, collection, fields)
            {
                $1.item.write(to: &$0)
            }
        case .meta:
            let rows = try await authorization.read(FindItemHeaders(range: range))
            let next = rows.last.flatMap { $0.isFollowed ? $0.header.id : nil }
            return Self.reply(rows, capacity: 256 + rows.count * 224, next, collection, fields) {
                $1.header.write(to: &$0)
            }
        }
    }

    private static func reply<Row>(
        _ rows: [Row], capacity: Int, _ last: ItemID?, _ collection: CollectionName?, _ fields: ItemFields,
        _ write: (inout JSONWriter, Row) -> Void
    ) -> Response {
        .json(capacity: capacity) { writer in
            writer.object { writer in
                writer.array("items") { writer in
                    for row in rows { writer.object { writer in write(&writer, row) } }
                }
                if let last {
                    writer.member("nextPage", ItemPage(after: last, collection: collection, fields: fields).text)
                }
            }
        }
    }
}

/// How much of each item a listing shows.
enum ItemFields: UInt8, Sendable, PathParameterConvertible {
    case all = 0
    /// What the server knows of an item without its sealed bytes.
    case meta = 1

    init?(pathParameter text: String) {
        guard text == "meta" else { return nil }
        self = .meta
    }
}
