internal import Postgres

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
