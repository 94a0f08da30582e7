internal import HTTPCore
internal import Postgres

/// `GET /v1/shares`: lists the caller's open shares in pages, newest first.
struct ListShares: AccountEndpoint {
    private let database: PostgresClient

    init(_ parts: Dependencies) {
        database = parts.database
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let position: SharePosition = try request.query.optional("page") ?? .first
        var rows = try await authorization.read(
            FindAccountShares(position: position, now: authorization.now, limit: Int64(limit + 1)))
        let isFollowed = rows.count > limit
        if isFollowed { rows.removeLast() }
        let headers =
            rows.isEmpty
            ? []
            : try await database.execute(
                FindShareHeaders(ids: rows.map(\.id), now: authorization.now, owner: authorization.accountID))
        return .json(capacity: 64 + headers.count * 288) { writer in
            writer.object { writer in
                writer.array("shares") { writer in
                    for header in headers { writer.object { writer in header.write(to: &writer) } }
                }
                if isFollowed, let last = rows.last {
                    writer.member("nextPage", SharePosition(createdAt: last.createdAt, id: last.id).text)
                }
            }
        }
    }
}

/// The position behind which a page of shares begins. Clients treat its text as opaque.
struct SharePosition: PathParameterConvertible, Equatable {
    /// All shares of the page are older, or equally old with a lower id.
    let createdAt: Timestamp
    let id: ShareID

    /// The start of the first page.
    static let first = SharePosition(createdAt: .distantFuture, id: .highest)

    init(createdAt: Timestamp, id: ShareID) {
        self.createdAt = createdAt
        self.id = id
    }

    init?(pathParameter text: String) {
        guard let (moment, bytes) = PositionToken.parse(text, .shares),
            let id = bytes.withUnsafeBytes({ ShareID(bytes: $0) })
        else { return nil }
        createdAt = moment
        self.id = id
    }

    var text: String { PositionToken.text(.shares, createdAt, id.bytes) }
}

/// Finds a page of the account's shares, newest first.
struct FindAccountShares: AccountRead {
    let position: SharePosition
    let now: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let id: ShareID
        let createdAt: Timestamp
    }

    static let sql: AccountSQL<Self> = """
        SELECT h.share_id, h.created_at FROM saltern.account_shares h
        WHERE h.account_id = \(.account) AND \(ShareCount.condition(at: "\(\.now)"))
            AND (h.created_at, h.share_id) < (\(\.position.createdAt), \(\.position.id))
        ORDER BY h.created_at DESC, h.share_id DESC LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the headers of open shares of an account, newest first.
struct FindShareHeaders: Statement {
    typealias Row = ShareHeader

    let ids: [ShareID]
    let now: Timestamp
    let owner: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(ShareHeader.columns) FROM saltern.shares s
        WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.owner_account = \(\.owner) AND (s.expires_at IS NULL
            OR s.expires_at > \(\.now))
        ORDER BY s.created_at DESC, s.share_id DESC
        """
}
