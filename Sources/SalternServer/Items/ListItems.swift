internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `GET /v1/items`: live items in the order of their identifiers, a page at a time.
struct ListItems: AccountEndpoint {
    /// How many items a page may have.
    static let limits = 1...500
    private static let defaultLimit = 100
    /// Sealed bytes of a page; a single item may have more.
    private static let byteLimit: Int64 = 4 * 1_048_576

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit: Int = try request.query.optional("limit") ?? Self.defaultLimit
        guard Self.limits.contains(limit) else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "The limit must be from 1 to \(Self.limits.upperBound).",
                field: "limit", limit: Self.limits.upperBound)
        }
        let page: ItemPage? = try request.query.optional("page")
        let rows = try await authorization.read(
            FindItems(first: page?.first ?? ItemPage.lowest, limit: Int64(limit), byteLimit: Self.byteLimit))
        return .json(capacity: rows.reduce(256) { $0 + $1.item.jsonCapacity }) { writer in
            writer.object { writer in
                writer.array("items") { writer in
                    for row in rows { writer.object { writer in row.item.write(to: &writer) } }
                }
                if let last = rows.last, last.isFollowed {
                    writer.member("nextPage", ItemPage(after: last.item.id).text)
                }
            }
        }
    }
}

/// Where a page of items begins: opaque to clients.
struct ItemPage: PathParameterConvertible, Equatable {
    /// No item of the page comes before it.
    let first: ItemID

    /// Where the first page begins.
    static let lowest = ItemID(UUID(high: 0, low: 0))

    /// Tells this kind of token, and its version, from any other.
    private static let tag: UInt8 = 0x01

    /// The page that begins behind an item that another item follows.
    init(after last: ItemID) {
        let (low, isCarried) = last.uuid.low.addingReportingOverflow(1)
        first = ItemID(UUID(high: last.uuid.high &+ (isCarried ? 1 : 0), low: low))
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count == 17, bytes[0] == Self.tag,
            let uuid = UUID(bytes: Array(bytes[1...]))
        else { return nil }
        first = ItemID(uuid)
    }

    var text: String { Base64URL.encodeToString([Self.tag] + first.uuid.bytes) }
}
