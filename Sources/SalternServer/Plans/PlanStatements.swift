internal import Postgres

extension AccountPlan {
    /// The columns that ``init(row:)`` reads, of the table `plans`.
    static let columns = "plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares, deleted_days"

    /// Reads ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        name = try row.next()
        limits = Limits(
            items: try row.next(), itemBytes: try row.next(), bytes: try row.next(), sessions: try row.next(),
            shares: try row.next(), deletedDays: try row.next())
    }
}

/// Every plan, by name.
struct FindPlans: Statement {
    static let isReadOnly = true
    static let sql = "SELECT \(AccountPlan.columns) FROM saltern.plans ORDER BY plan"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountPlan { try AccountPlan(row: &row) }
}

/// Changes a plan, or makes it: what is not named is taken from the plan itself, and of a new one from `default`.
/// Needs the rights of the schema's owner.
struct SetPlan: Statement {
    let name: String
    let changes: AccountPlan.Changes

    static let sql = """
        INSERT INTO saltern.plans (\(AccountPlan.columns))
        SELECT $1, coalesce($2, base.max_items), coalesce($3, base.max_item_bytes), coalesce($4, base.max_bytes),
            coalesce($5, base.max_sessions), coalesce($6, base.max_shares), coalesce($7, base.deleted_days)
        FROM saltern.plans base
        WHERE base.plan = CASE WHEN EXISTS (SELECT FROM saltern.plans same WHERE same.plan = $1)
            THEN $1 ELSE 'default' END
        ON CONFLICT (plan) DO UPDATE
        SET max_items = excluded.max_items, max_item_bytes = excluded.max_item_bytes, max_bytes = excluded.max_bytes,
            max_sessions = excluded.max_sessions, max_shares = excluded.max_shares,
            deleted_days = excluded.deleted_days
        RETURNING \(AccountPlan.columns)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(name)
        parameters.append(changes.items)
        parameters.append(changes.itemBytes)
        parameters.append(changes.bytes)
        parameters.append(changes.sessions)
        parameters.append(changes.shares)
        parameters.append(changes.deletedDays)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountPlan { try AccountPlan(row: &row) }
}

/// The account that a userid leads to.
struct FindAccountOfUserid: Statement {
    let userid: String

    static let isReadOnly = true
    static let sql = "SELECT account_id FROM saltern.logins WHERE userid = $1"

    func bind(to parameters: inout Parameters) { parameters.append(userid) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Gives an account a plan; no row when there is no such account or plan.
struct AssignPlan: Statement {
    let accountID: AccountID
    let plan: String

    static let sql = """
        UPDATE saltern.accounts a SET plan = p.plan FROM saltern.plans p
        WHERE a.account_id = $1 AND p.plan = $2
        RETURNING a.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(plan)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}
