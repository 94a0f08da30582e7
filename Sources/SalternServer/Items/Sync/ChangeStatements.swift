internal import Postgres

/// Which changes a page may show.
///
/// A client that begins with nothing needs no tombstone of what was deleted before: there is none up to the floor of its
/// listing, unless it asks. What is deleted while it lists has a tombstone above.
struct ChangeRange: Sendable {
    /// Nil for a client that begins with nothing.
    let since: SyncCursor?
    /// Nil for changes of every collection.
    var collection: CollectionName?
    let limit: Int64
    /// Whether also those tombstones are listed that a client with nothing does not need.
    let listsAllTombstones: Bool

    private var position: Int64 { since?.revision ?? 0 }

    /// What the account says of itself.
    ///
    /// A cursor is expired when tombstones above its floor were purged; when it is from before the base was moved; and
    /// when the account has not come so far yet. No changes are looked for then.
    static let head: AccountSQL<Self> = """
        SELECT n.*, coalesce(\(\.since?.floor), n.head) NOT BETWEEN n.earliest AND n.head AS is_expired
            FROM (
                SELECT b.revision_base, greatest(a.revision, b.revision_base) AS head,
                    greatest(a.purged_revision, b.revision_base) AS earliest
                FROM saltern.accounts a CROSS JOIN saltern.installation b
                WHERE a.account_id = \(.account) AND b.singleton
            ) n
        """

    /// How many items and tombstones a statement looks through for the page that it shows, however few of them are in the
    /// collection, or live.
    static let walkSize: Int64 = 5_000

    /// The changes, one more than the limit, with ``head`` as `h`. A collection has no index: what is walked is what has
    /// changed in all of them.
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

    /// The last revision that was walked, with ``head`` as `h` and what was found as `i`: null when more was found than
    /// the limit, so that nobody asks, and when nothing is left behind what was walked.
    static let walkEnd: AccountSQL<Self> = """
        CASE WHEN coalesce(i.found, 0) <= \(\.limit) AND NOT h.is_expired THEN (
                SELECT stored.revision FROM saltern.items stored
                WHERE stored.account_id = \(.account) AND stored.revision > \(\.position) AND stored.revision > 0
                ORDER BY stored.revision OFFSET \(walkSize) - 1 LIMIT 1
            ) END
        """
}

/// What the account says of itself, and one change; a single row without a change when there is none.
struct ChangeRow<Change: Sendable>: Sendable {
    /// ``AccountCounter/head(_:)``: no change of this snapshot is above it, and every later one will be.
    let head: Int64
    let revisionBase: Int64
    let isExpired: Bool
    /// How far the statement has looked when it ended before the account's head; nil otherwise.
    let walkEnd: Int64?
    let change: Change?
    /// Whether another change follows the page's last.
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

/// Changes as many as the range and `byteLimit` allow, but at least one.
///
/// Costs 359 thousand instructions for a page of one change. It is one statement, because head, base and changes have to be
/// of one moment.
struct FindChanges: AccountRead {
    let range: ChangeRange
    /// Sealed bytes in all.
    let byteLimit: Int64

    typealias Row = ChangeRow<ItemInParts>

    /// The lengths of columns that are stored apart are known without reading them.
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

/// Changes without their sealed bytes, which are not read.
struct FindChangeHeaders: AccountRead {
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
