internal import HTTPCore
internal import Postgres

/// `GET /v1/changes`: lists items and tombstones in the order of their changes, from a cursor on.
///
/// A page longer than one window is fetched while it is sent. A page may be empty and still have a next page, because
/// each page scans a limited number of items (``ChangeRange/walkSize``).
struct ListChanges: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let collection: CollectionName? = try request.query.optional("collection")
        let fields: ItemFields = try request.query.optional("fields") ?? .all
        let since = try request.query["since"].map { text throws(SyncProblem) in try SyncCursor(text) }
        if let since, since.collection != collection { throw SyncProblem.malformedCursor }
        let range = ChangeRange(
            since: since, collection: collection, limit: Int64(limit),
            listsAllTombstones: try Self.listsAllTombstones(request))
        switch fields {
        case .all:
            let rows = try await items.read(FindChanges(range: range, byteLimit: PageSize.windowByteLimit))
            return ChangePage(
                reader: items.reader, range: range, first: rows, head: try Self.checkedHead(rows.first),
                revisionBase: rows.first?.revisionBase ?? 0
            ).response()
        case .meta:
            let rows = try await items.read(FindChangeHeaders(range: range))
            let head = try Self.checkedHead(rows.first)
            let position = ChangePosition(after: rows.last, \.header.revision, of: range, head: head)
            return .json(capacity: 256 + rows.count * 224) { writer in
                writer.object { writer in
                    writer.array("changes") { writer in
                        for change in rows.compactMap(\.change) {
                            writer.object { writer in change.header.write(isDeleted: change.isDeleted, to: &writer) }
                        }
                    }
                    position.write(revisionBase: rows.first?.revisionBase ?? 0, to: &writer)
                }
            }
        }
    }

    /// Returns the account's head from the first row of a page.
    ///
    /// - Throws: ``Unauthenticated`` if the account is gone, ``SyncProblem/cursorExpired``.
    private static func checkedHead<Change>(_ first: ChangeRow<Change>?) throws -> Int64 {
        guard let first else { throw Unauthenticated() }
        if first.isExpired { throw SyncProblem.cursorExpired }
        return first.head
    }

    /// Reads `tombstones=all`, for a client that restarts without a cursor but with items.
    private static func listsAllTombstones(_ request: Request) throws(Problem) -> Bool {
        switch request.query["tombstones"] {
        case nil: false
        case "all": true
        default:
            throw Problem(
                .badRequest, "invalid_parameter", detail: "`tombstones` must be `all`, or omitted.", field: "tombstones"
            )
        }
    }
}

/// The client's position after a page: the last change if others follow, the last scanned revision if the scan was cut
/// off, or the account's head. The head is used because tombstones above the last change may be purged.
struct ChangePosition: Sendable {
    let cursor: SyncCursor
    let more: Bool
    /// True if a next change exists, not only rows to scan.
    let isFollowed: Bool

    /// - Parameters:
    ///   - last: The last row found.
    ///   - head: The account's head at the start of the page.
    init<Change>(
        after last: ChangeRow<Change>?, _ revision: (Change) -> Int64, of range: ChangeRange, head: Int64
    ) {
        isFollowed = last?.isFollowed ?? false
        if let seen = isFollowed ? last?.change.map(revision) : last?.walkEnd {
            cursor = SyncCursor(revision: seen, floor: range.since?.floor ?? head, collection: range.collection)
            more = true
        } else {
            let head = last?.head ?? head
            cursor = SyncCursor(revision: head, floor: head, collection: range.collection)
            more = false
        }
    }

    /// Creates the position at the start of a page.
    init(beginning range: ChangeRange, head: Int64) {
        cursor = SyncCursor(revision: 0, floor: range.since?.floor ?? head, collection: range.collection)
        more = true
        isFollowed = true
    }

    /// Writes the members behind the changes of a page.
    func write(revisionBase: Int64, to writer: inout JSONWriter) {
        writer.member("cursor", cursor.text)
        writer.member("more", more)
        writer.member("revisionBase", revisionBase)
    }
}

/// One page of changes whose first window has been read.
struct ChangePage: Sendable {
    let reader: ItemReader
    let range: ChangeRange
    let first: [FindChanges.Row]
    /// The account's head and the revision base at the start of the page.
    let head: Int64
    let revisionBase: Int64

    /// Returns the page, streamed if it has more than one window.
    func response() -> Response {
        let changes = first.compactMap(\.change)
        let position = position(after: first.last)
        guard PageWindows.isWhole(changes, isFollowed: position.isFollowed, range.limit) else {
            return Response(
                status: .ok, fields: ["Content-Type": "application/json"],
                body: .stream(ResponseStream(isOpenEnded: false) { body in try await write(to: body) }))
        }
        return .json(capacity: changes.reduce(256) { $0 + $1.item.jsonCapacity }) { writer in
            writer.object { writer in
                writer.array("changes") { writer in
                    for change in changes { writer.object { writer in change.item.write(to: &writer) } }
                }
                position.write(revisionBase: revisionBase, to: &writer)
            }
        }
    }

    private func position(after last: FindChanges.Row?) -> ChangePosition {
        ChangePosition(after: last, \.item.revision, of: range, head: head)
    }

    private func write(to body: any ResponseBodyWriter) async throws {
        var output = JSONOutput(body)
        output.writer.beginObject()
        output.writer.name("changes")
        output.writer.beginArray()
        var window = first
        var size = PageWindows(limit: range.limit)
        var position = ChangePosition(beginning: range, head: head)
        while true {
            for row in window {
                guard let change = row.change, size.takes(change.byteCount) else { continue }
                output.writer.beginObject()
                try await change.write(to: &output, reader)
                output.writer.endObject()
                try await output.flushIfLarge()
                position = self.position(after: row)
            }
            guard position.isFollowed, size.hasRoom, let next = await next(after: position.cursor, size) else { break }
            window = next
            // Nothing follows: the next change was a tombstone that is purged now.
            if let last = next.last, last.change == nil { position = self.position(after: last) }
        }
        output.writer.endArray()
        position.write(revisionBase: revisionBase, to: &output.writer)
        output.writer.endObject()
        try await output.flush()
    }

    /// Returns the next window. Nil if it cannot be read now: a page may end anywhere, and the next request reports the
    /// error.
    private func next(after cursor: SyncCursor, _ size: PageWindows) async -> [FindChanges.Row]? {
        let rest = ChangeRange(
            since: cursor, collection: range.collection, limit: size.remaining,
            listsAllTombstones: range.listsAllTombstones)
        let find = FindChanges(range: rest, byteLimit: size.windowByteLimit)
        guard let rows = try? await reader.read(find), let first = rows.first, !first.isExpired else { return nil }
        return rows
    }
}
