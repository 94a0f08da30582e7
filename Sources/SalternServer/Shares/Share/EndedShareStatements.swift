internal import Postgres

/// The shares that ended first, by the index `shares_by_expiry`. Those that are used up have ended too. Those without an
/// account are ``AccountID/nobody``'s.
struct FindEndedShares: Statement {
    /// With its sealed bytes.
    typealias Row = DueRow<ShareID>

    let now: Timestamp
    /// Accounts that are left out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(owner), s.share_id, octet_length(s.sealed)::bigint FROM saltern.shares s
        WHERE s.expires_at <= \(\.now) AND \(owner) <> ALL(\(\.except)::uuid[])
        ORDER BY s.expires_at LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(owner: try row.next(), id: try row.next(), bytes: try row.next())
    }

    private static let owner: SQLFragment = "coalesce(s.owner_account, '00000000-0000-0000-0000-000000000000')"
}

/// The shares of an account, or nobody's, that have ended and are still stored: some of them.
struct FindEndedAccountShares: Statement {
    typealias Row = ShareID

    let accountID: AccountID
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT h.share_id FROM saltern.account_shares h
        WHERE h.account_id = \(\.accountID) AND h.expires_at <= \(\.now)
        LIMIT 1000
        """
}

/// Removes shares that have ended, and returns which. One that somebody has locked at this moment stays for the next purge.
struct RemoveEndedShares: Statement {
    typealias Row = ShareID

    let ids: [ShareID]
    let now: Timestamp

    static let sql: SQL<Self> = """
        WITH idle AS (
            SELECT s.share_id FROM saltern.shares s
            WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.expires_at <= \(\.now)
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM saltern.shares d USING idle i WHERE d.share_id = ANY(\(\.ids)::bytea[]) AND d.share_id = i.share_id
        RETURNING d.share_id
        """
}

/// Removes a share whose last view was taken. It waits for who asks for the share at another node at this moment: the share is
/// struck off its owner's list in the same transaction.
struct RemoveUsedUpShare: Statement {
    typealias Row = ChangedRows

    let id: ShareID
    let now: Timestamp

    static let sql: SQL<Self> =
        "DELETE FROM saltern.shares s WHERE s.share_id = \(\.id) AND s.expires_at <= \(\.now)"
}
