public import Postgres

extension AccountSummary: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `accounts` as `a`.
    fileprivate static let columns: SQLFragment = """
        a.account_id, a.userid, a.plan, a.item_count, a.item_bytes, a.created_at, a.locked_at,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = a.account_id)
        """

    public init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        userid = try row.next()
        plan = try row.next()
        items = try row.next()
        bytes = try row.next()
        createdAt = try row.next()
        lockedAt = try row.next()
        lastUsedAt = try row.next()
    }
}

/// Finds userids in their order, behind `after`.
struct FindLogins: Statement {
    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT l.userid, l.account_id FROM saltern.logins l
        WHERE l.userid > \(\.after) AND l.userid >= \(\.filter.useridPrefix) AND l.userid < \(\.filter.end)
        ORDER BY l.userid LIMIT \(\.limit)
        """

    static func decode(
        _ row: inout RowReader
    ) throws(PostgresError) -> (userid: String, accountID: AccountID) {
        (userid: try row.next(), accountID: try row.next())
    }
}

/// Summarises accounts by their ids, in the order of their userids, and omits those outside the filter's plan and part
/// of a userid.
struct SummarizeAccounts: Statement {
    typealias Row = AccountSummary

    let accountIDs: [AccountID]
    let filter: AccountFilter

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.account_id = ANY(\(\.accountIDs)) AND (\(\.filter.plan)::text IS NULL OR a.plan = \(\.filter.plan))
            AND (\(\.filter.useridPart)::text IS NULL OR strpos(a.userid, \(\.filter.useridPart)) > 0)
        ORDER BY a.userid
        """
}

/// Finds locked accounts in the order of their userids, behind `after`, by the index `accounts_locked`.
struct FindLockedAccounts: Statement {
    typealias Row = AccountSummary

    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.locked_at IS NOT NULL AND a.userid > \(\.after) AND a.userid >= \(\.filter.useridPrefix)
            AND a.userid < \(\.filter.end)
            AND (\(\.filter.plan)::text IS NULL OR a.plan = \(\.filter.plan))
            AND (\(\.filter.useridPart)::text IS NULL OR strpos(a.userid, \(\.filter.useridPart)) > 0)
        ORDER BY a.userid LIMIT \(\.limit)
        """
}

/// Finds the KDF iterations of a userid.
struct FindIterationsOfUserid: Statement {
    typealias Row = Int32

    let userid: String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT l.kdf_iterations FROM saltern.logins l WHERE l.userid = \(\.userid)"
}
