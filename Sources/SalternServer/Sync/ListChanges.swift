internal import HTTPCore
internal import Postgres

/// `GET /v1/changes`: items and tombstones in the order in which they changed, from a cursor on.
struct ListChanges: AccountEndpoint {
    /// How many changes a page may have.
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
        let since = try request.query["since"].map { text throws(SyncProblem) in try SyncCursor(text) }
        let rows = try await authorization.read(
            FindChanges(since: since, limit: Int64(limit), byteLimit: Self.byteLimit))
        guard let first = rows.first else { throw Unauthenticated() }
        if first.isExpired { throw SyncProblem.cursorExpired }
        let (next, more) = Self.next(after: since, rows, head: first.accountRevision)
        return .json(capacity: rows.reduce(256) { $0 + ($1.change?.jsonCapacity ?? 0) }) { writer in
            writer.object { writer in
                writer.array("changes") { writer in
                    for case let change? in rows.lazy.map(\.change) {
                        writer.object { writer in change.write(to: &writer) }
                    }
                }
                writer.member("cursor", next.text)
                writer.member("more", more)
            }
        }
    }

    /// Where the client is after a page: at the last change of it, or at the account's own revision when nothing
    /// follows, because the tombstones above the last change may be gone.
    private static func next(
        after since: SyncCursor?, _ rows: [FindChanges.Row], head: Int64
    ) -> (cursor: SyncCursor, more: Bool) {
        guard let last = rows.last, let change = last.change, last.isFollowed else {
            return (SyncCursor(revision: head, floor: head), false)
        }
        return (SyncCursor(revision: change.revision, floor: since?.floor ?? head), true)
    }
}
