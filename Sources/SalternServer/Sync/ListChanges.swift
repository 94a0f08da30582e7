internal import HTTPCore
internal import Postgres

/// `GET /v1/changes`: items and tombstones in the order in which they changed, from a cursor on.
struct ListChanges: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let since = try request.query["since"].map { text throws(SyncProblem) in try SyncCursor(text) }
        let rows = try await authorization.read(
            FindChanges(since: since, limit: Int64(limit), byteLimit: PageSize.byteLimit))
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
