internal import Postgres

/// Finds ended shares, earliest end first, by the index `shares_by_expiry`. Used-up shares have ended as well. Shares
/// without an account have the owner `AccountID.nobody`.
struct FindEndedShares: Statement {
    /// The row with its sealed bytes.
    typealias Row = DueRow<ShareID>

    let now: Timestamp
    /// Accounts to leave out.
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

/// Finds up to 1,000 ended shares that are still on an account's list, or on that of shares without one.
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

/// Removes ended shares and returns their ids. A share that is locked at the moment is left to the next purge.
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

/// Removes a share after its last view. It waits for concurrent requests of the share on other nodes, because the same
/// transaction removes the share from its owner's list.
struct RemoveUsedUpShare: Statement {
    typealias Row = ChangedRows

    let id: ShareID
    let now: Timestamp

    static let sql: SQL<Self> =
        "DELETE FROM saltern.shares s WHERE s.share_id = \(\.id) AND s.expires_at <= \(\.now)"
}
