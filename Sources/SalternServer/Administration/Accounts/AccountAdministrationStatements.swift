internal import Postgres

/// Locks an account, or unlocks it if `lockedAt` is nil. Returns no row if it is already so.
struct SetLock: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let lockedAt: Timestamp?

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET locked_at = \(\.lockedAt)
        WHERE a.account_id = \(\.accountID) AND (a.locked_at IS NULL) <> (\(\.lockedAt)::timestamptz IS NULL)
        RETURNING a.account_id
        """
}

/// Finds the name of an account's plan.
struct FindPlanOfAccount: Statement {
    typealias Row = String

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT a.plan FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

/// Reads the description of an account.
struct DescribeAccount: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.account_id, a.userid, a.plan, a.created_at, a.locked_at, a.item_count, a.item_bytes,
            coalesce(octet_length(a.keyring), 0),
            (
                SELECT count(*) FROM saltern.kept_keyrings k
                WHERE k.account_id = \(\.accountID) AND k.keyring IS NOT NULL AND k.expires_at > \(\.now)
            ),
            a.credential_revision, a.invite_id,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = \(\.accountID)),
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = \(\.accountID)
                    AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
            ),
            \(ShareCount.sql(of: "\(\.accountID)", at: "\(\.now)")),
            \(MembershipCount.sql(of: "\(\.accountID)")),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = \(\.accountID)),
            (SELECT f.confirmed_at FROM saltern.second_factors f WHERE f.account_id = \(\.accountID)),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)),
            (SELECT p.updated_at FROM saltern.receipts p WHERE p.account_id = \(\.accountID))
        FROM saltern.accounts a WHERE a.account_id = \(\.accountID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountDescription {
        try row.read(AccountDescription.init)
    }
}
