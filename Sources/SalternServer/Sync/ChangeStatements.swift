internal import Postgres

/// Changes of the account's items in the order of their revisions, as many as `limit` and `byteLimit` allow, but at
/// least one; and what the account says of itself in the same snapshot.
struct FindChanges: AccountRead {
    /// Nil for a client that begins with nothing.
    let since: SyncCursor?
    let limit: Int64
    /// Sealed bytes in all.
    let byteLimit: Int64

    /// What the account says, and one change; a single row without a change when there is none.
    struct Row: Sendable {
        /// The revision of the account's latest change.
        let accountRevision: Int64
        let isExpired: Bool
        let change: Item?
        /// Whether another change follows the page's last.
        let isFollowed: Bool
    }

    /// A cursor is expired when tombstones above its floor were purged, or when the account has not come so far yet:
    /// then the database was restored from a backup. No changes are looked for then.
    ///
    /// The lengths of columns that are stored apart are known without reading them.
    static let sql = """
        SELECT a.revision, coalesce($3, a.revision) NOT BETWEEN a.purged_revision AND a.revision, i.position < i.found, \(Item.columns)
        FROM saltern.accounts a LEFT JOIN LATERAL (
            SELECT page.* FROM (
                SELECT next.*, row_number() OVER by_revision AS position, count(*) OVER () AS found,
                    sum(coalesce(octet_length(next.body), 0) + coalesce(octet_length(next.title), 0))
                        OVER by_revision AS bytes
                FROM (
                    SELECT stored.* FROM saltern.items stored
                    WHERE stored.account_id = $1 AND stored.revision > $2
                        AND coalesce($3, a.revision) BETWEEN a.purged_revision AND a.revision
                    ORDER BY stored.revision LIMIT $4 + 1
                ) next
                WINDOW by_revision AS (ORDER BY next.revision ROWS UNBOUNDED PRECEDING)
            ) page
            WHERE page.position <= $4 AND (page.bytes <= $5 OR page.position = 1)
        ) i ON true
        WHERE a.account_id = $1
        ORDER BY i.revision
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(since?.revision ?? 0)
        parameters.append(since?.floor)
        parameters.append(limit)
        parameters.append(byteLimit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        let accountRevision: Int64 = try row.next()
        let isExpired: Bool = try row.next()
        let isFollowed: Bool? = try row.next()
        return Row(
            accountRevision: accountRevision, isExpired: isExpired,
            change: isFollowed == nil ? nil : try Item(row: &row), isFollowed: isFollowed ?? false)
    }
}
