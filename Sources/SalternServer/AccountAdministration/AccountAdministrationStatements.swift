internal import Postgres

/// Locks an account, or unlocks it when `lockedAt` is nil; no row when it is so already.
struct SetLock: Statement {
    let accountID: AccountID
    let lockedAt: Timestamp?

    static let sql = """
        UPDATE saltern.accounts a SET locked_at = $2
        WHERE a.account_id = $1 AND (a.locked_at IS NULL) <> ($2::timestamptz IS NULL)
        RETURNING a.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(lockedAt)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// The name of an account's plan.
struct FindPlanOfAccount: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT a.plan FROM saltern.accounts a WHERE a.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> String { try row.next() }
}

/// What there is to say about an account.
struct DescribeAccount: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql = """
        SELECT a.account_id, a.userid, a.plan, a.created_at, a.locked_at, a.item_count, a.item_bytes,
            coalesce(octet_length(a.keyring), 0), a.credential_revision, a.invite_id,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = $1),
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = $1 AND s.expires_at > $2 AND s.last_used_at > $3 AND NOT s.restricted
            ),
            \(ShareCount.sql(at: "$2")),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = $1),
            (SELECT f.confirmed_at FROM saltern.second_factors f WHERE f.account_id = $1),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = $1),
            (SELECT p.updated_at FROM saltern.receipts p WHERE p.account_id = $1)
        FROM saltern.accounts a WHERE a.account_id = $1
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountDescription {
        AccountDescription(
            id: try row.next(), userid: try row.next(), plan: try row.next(), createdAt: try row.next(),
            lockedAt: try row.next(), items: try row.next(), bytes: try row.next(), keyringBytes: try row.next(),
            credentialRevision: try row.next(), inviteID: try row.next(), lastUsedAt: try row.next(),
            sessions: try row.next(), shares: try row.next(), recoverySetAt: try row.next(),
            secondFactorSince: try row.next(), secondFactorCodes: try row.next(), receiptChangedAt: try row.next())
    }
}
