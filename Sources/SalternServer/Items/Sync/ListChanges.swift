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

/// The changes that a page may contain.
///
/// A client without a cursor needs no tombstones of earlier deletions, so those up to its floor are omitted unless
/// requested. Deletions during its listing have tombstones above the floor.
struct ChangeRange: Sendable {
    /// Nil for a client without a cursor.
    let since: SyncCursor?
    /// Nil for changes of all collections.
    var collection: CollectionName?
    let limit: Int64
    /// True to include tombstones that a client without items does not need.
    let listsAllTombstones: Bool

    private var position: Int64 { since?.revision ?? 0 }

    /// The account's head and base, and the expiry of the cursor.
    ///
    /// A cursor is expired if tombstones above its floor were purged, if it precedes a move of the base, or if it is
    /// above the account's head. No changes are read then.
    static let head: AccountSQL<Self> = """
        SELECT n.*, coalesce(\(\.since?.floor), n.head) NOT BETWEEN n.earliest AND n.head AS is_expired
            FROM (
                SELECT b.revision_base, greatest(a.revision, b.revision_base) AS head,
                    greatest(a.purged_revision, b.revision_base) AS earliest
                FROM saltern.accounts a CROSS JOIN saltern.installation b
                WHERE a.account_id = \(.account) AND b.singleton
            ) n
        """

    /// The number of items and tombstones that a statement scans for a page, including those of other collections.
    static let walkSize: Int64 = 5_000

    /// Selects the changes, one more than the limit, with ``head`` as `h`. Collections have no index, so the scan
    /// covers all.
    static let changes: AccountSQL<Self> = """
        SELECT walked.* FROM (
                    SELECT stored.* FROM saltern.items stored
                    WHERE stored.account_id = \(.account) AND stored.revision > \(\.position) AND stored.revision > 0
                        AND NOT h.is_expired
                    ORDER BY stored.revision LIMIT \(walkSize)
                ) walked
                WHERE (NOT walked.deleted OR \(\.listsAllTombstones)
                        OR walked.revision > coalesce(\(\.since?.floor), h.head))
                    AND (\(\.collection?.name)::text IS NULL OR walked.collection = \(\.collection?.name))
                ORDER BY walked.revision LIMIT \(\.limit) + 1
        """

    /// The last scanned revision, with ``head`` as `h` and the page as `i`. Null if more changes than the limit were
    /// found, or if nothing follows the scanned rows.
    static let walkEnd: AccountSQL<Self> = """
        CASE WHEN coalesce(i.found, 0) <= \(\.limit) AND NOT h.is_expired THEN (
                SELECT stored.revision FROM saltern.items stored
                WHERE stored.account_id = \(.account) AND stored.revision > \(\.position) AND stored.revision > 0
                ORDER BY stored.revision OFFSET \(walkSize) - 1 LIMIT 1
            ) END
        """
}

/// The account's head and one change. A single row without a change if there is none.
struct ChangeRow<Change: Sendable>: Sendable {
    /// ``AccountCounter/head(_:)``: all changes of this snapshot are at or below it, and all later ones above.
    let head: Int64
    let revisionBase: Int64
    let isExpired: Bool
    /// The last scanned revision if the scan ended before the account's head. Otherwise nil.
    let walkEnd: Int64?
    let change: Change?
    /// True if another change follows the page's last one.
    let isFollowed: Bool

    init(
        _ row: inout RowReader, _ change: (inout RowReader) throws(PostgresError) -> Change
    ) throws(PostgresError) {
        head = try row.next()
        revisionBase = try row.next()
        isExpired = try row.next()
        walkEnd = try row.next()
        let isFollowed: Bool? = try row.next()
        self.change = isFollowed == nil ? nil : try change(&row)
        self.isFollowed = isFollowed ?? false
    }
}

/// Finds as many changes as the range and `byteLimit` allow, but at least one.
///
/// Costs 359 thousand instructions for a page of one change. It is one statement, because head, base and changes must
/// be of one snapshot.
struct FindChanges: ItemRead {
    let range: ChangeRange
    /// Maximum of sealed bytes in total.
    let byteLimit: Int64

    typealias Row = ChangeRow<ItemInParts>

    /// PostgreSQL computes the lengths of externally stored columns without reading them.
    static let sql: AccountSQL<Self> = """
        SELECT h.head, h.revision_base, h.is_expired, \(ChangeRange.walkEnd, of: \.range), i.position < i.found,
            \(ItemInParts.columns)
        FROM (\(ChangeRange.head, of: \.range)) h LEFT JOIN LATERAL (
            SELECT page.* FROM (
                SELECT next.*, row_number() OVER by_revision AS position, count(*) OVER () AS found,
                    sum(\(SealedSize.bytes(of: "next"))) OVER by_revision AS bytes
                FROM (\(ChangeRange.changes, of: \.range)) next
                WINDOW by_revision AS (ORDER BY next.revision ROWS UNBOUNDED PRECEDING)
            ) page
            WHERE page.position <= \(\.range.limit) AND (page.bytes <= \(\.byteLimit) OR page.position = 1)
        ) i ON true
        ORDER BY i.revision
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        try Row(&row) { row throws(PostgresError) in try ItemInParts(row: &row) }
    }
}

/// Finds changes without reading their sealed bytes.
struct FindChangeHeaders: ItemRead {
    let range: ChangeRange

    struct Change: Sendable {
        let header: ItemHeader
        let isDeleted: Bool
    }

    typealias Row = ChangeRow<Change>

    static let sql: AccountSQL<Self> = """
        SELECT h.head, h.revision_base, h.is_expired, \(ChangeRange.walkEnd, of: \.range), i.position < i.found,
            \(ItemHeader.columns), i.deleted
        FROM (\(ChangeRange.head, of: \.range)) h LEFT JOIN LATERAL (
            SELECT page.* FROM (
                SELECT next.*, row_number() OVER by_revision AS position, count(*) OVER () AS found
                FROM (\(ChangeRange.changes, of: \.range)) next
                WINDOW by_revision AS (ORDER BY next.revision ROWS UNBOUNDED PRECEDING)
            ) page
            WHERE page.position <= \(\.range.limit)
        ) i ON true
        ORDER BY i.revision
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        try Row(&row) { row throws(PostgresError) in
            Change(header: try ItemHeader(row: &row), isDeleted: try row.next())
        }
    }
}
