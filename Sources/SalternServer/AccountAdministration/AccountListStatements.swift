internal import Postgres

extension AccountSummary {
    /// The columns that ``init(row:)`` reads, of the table `accounts` as `a`.
    fileprivate static let columns = """
        a.account_id, a.userid, a.plan, a.item_count, a.item_bytes, a.created_at, a.locked_at,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = a.account_id)
        """

    fileprivate init(row: inout RowReader) throws(PostgresError) {
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

/// Userids in their order, behind `after`.
struct FindLogins: Statement {
    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT l.userid, l.account_id FROM saltern.logins l
        WHERE l.userid > $1 AND l.userid >= $2 AND l.userid < $3
        ORDER BY l.userid LIMIT $4
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after)
        parameters.append(filter.useridPrefix)
        parameters.append(filter.end)
        parameters.append(limit)
    }

    static func decode(
        _ row: inout RowReader
    ) throws(PostgresError) -> (userid: String, accountID: AccountID) {
        (userid: try row.next(), accountID: try row.next())
    }
}

/// Accounts by their identifiers, those of one plan or all, in the order of their userids.
struct SummarizeAccounts: Statement {
    let accountIDs: [AccountID]
    let plan: String?

    static let isReadOnly = true
    static let sql = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.account_id = ANY($1) AND ($2::text IS NULL OR a.plan = $2)
        ORDER BY a.userid
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountIDs.map(\.uuid))
        parameters.append(plan)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountSummary {
        try AccountSummary(row: &row)
    }
}

/// Locked accounts in the order of their userids, behind `after`, by the index `accounts_locked`.
struct FindLockedAccounts: Statement {
    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.locked_at IS NOT NULL AND a.userid > $1 AND a.userid >= $2 AND a.userid < $3
            AND ($4::text IS NULL OR a.plan = $4)
        ORDER BY a.userid LIMIT $5
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after)
        parameters.append(filter.useridPrefix)
        parameters.append(filter.end)
        parameters.append(filter.plan)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountSummary {
        try AccountSummary(row: &row)
    }
}

/// The KDF iterations of a userid.
struct FindIterationsOfUserid: Statement {
    let userid: String

    static let isReadOnly = true
    static let sql = "SELECT l.kdf_iterations FROM saltern.logins l WHERE l.userid = $1"

    func bind(to parameters: inout Parameters) { parameters.append(userid) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int32 { try row.next() }
}
