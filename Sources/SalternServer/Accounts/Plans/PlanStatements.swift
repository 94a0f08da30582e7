public import Postgres

extension AccountPlan: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `plans`.
    static let columns: SQLFragment = """
        plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares, deleted_days, max_vaults,
            max_memberships, max_vault_members, vault_items, vault_bytes
        """

    /// Reads the columns of ``columns``.
    public init(row: inout RowReader) throws(PostgresError) {
        name = try row.next()
        limits = try Limits(row: &row)
    }
}

extension AccountPlan.Limits: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `plans` as `p`.
    static let columns: SQLFragment = """
        p.max_items, p.max_item_bytes, p.max_bytes, p.max_sessions, p.max_shares, p.deleted_days,
            p.max_vaults, p.max_memberships, p.max_vault_members, p.vault_items, p.vault_bytes
        """

    public init(row: inout RowReader) throws(PostgresError) {
        items = try row.next()
        itemBytes = try row.next()
        bytes = try row.next()
        sessions = try row.next()
        shares = try row.next()
        deletedDays = try row.next()
        vaults = try row.next()
        memberships = try row.next()
        vaultMembers = try row.next()
        vaultItems = try row.next()
        vaultBytes = try row.next()
    }
}

/// Finds all plans, by name.
struct FindPlans: Statement {
    typealias Row = AccountPlan

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(AccountPlan.columns) FROM saltern.plans ORDER BY plan"
}

/// Changes a plan or creates it. Unchanged limits come from the plan itself, and of a new plan from `default`. Requires
/// the rights of the schema's owner.
///
/// It touches no account's row, although a short path decides by the plan (``ShortPath/plan(permits:)``). A write that
/// waits for its account therefore uses the plan from before the wait. That equals a write that came a moment earlier:
/// a plan limits additions, removes nothing, and affects no counter. ``AssignPlan`` does touch the account.
struct SetPlan: Statement {
    typealias Row = AccountPlan

    let name: String
    let changes: AccountPlan.Changes

    static let sql: SQL<Self> = """
        INSERT INTO saltern.plans (\(AccountPlan.columns))
        SELECT \(\.name), coalesce(\(\.changes.items), base.max_items), coalesce(\(\.changes.itemBytes),
            base.max_item_bytes), coalesce(\(\.changes.bytes), base.max_bytes),
            coalesce(\(\.changes.sessions), base.max_sessions), coalesce(\(\.changes.shares), base.max_shares),
            coalesce(\(\.changes.deletedDays), base.deleted_days), coalesce(\(\.changes.vaults), base.max_vaults),
            coalesce(\(\.changes.memberships), base.max_memberships),
            coalesce(\(\.changes.vaultMembers), base.max_vault_members),
            coalesce(\(\.changes.vaultItems), base.vault_items), coalesce(\(\.changes.vaultBytes), base.vault_bytes)
        FROM saltern.plans base
        WHERE base.plan = CASE WHEN EXISTS (SELECT FROM saltern.plans same WHERE same.plan = \(\.name))
            THEN \(\.name) ELSE 'default' END
        ON CONFLICT (plan) DO UPDATE
        SET max_items = excluded.max_items, max_item_bytes = excluded.max_item_bytes, max_bytes = excluded.max_bytes,
            max_sessions = excluded.max_sessions, max_shares = excluded.max_shares,
            deleted_days = excluded.deleted_days, max_vaults = excluded.max_vaults,
            max_memberships = excluded.max_memberships, max_vault_members = excluded.max_vault_members,
            vault_items = excluded.vault_items, vault_bytes = excluded.vault_bytes
        RETURNING \(AccountPlan.columns)
        """
}

/// Finds out if accounts or their vaults have a plan, and if open invites give it.
struct FindPlanUse: Statement {
    let name: String
    let now: Timestamp

    struct Row: Sendable {
        let hasAccounts: Bool
        let hasInvites: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT EXISTS (SELECT FROM saltern.accounts a WHERE a.plan = \(\.name))
                OR EXISTS (SELECT FROM saltern.vaults v WHERE v.plan = \(\.name)),
            EXISTS (
                SELECT FROM saltern.invites i
                WHERE i.plan = \(\.name) AND i.used_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > \(\.now))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Prevents the removal of a plan until the transaction ends, before accounts or invites receive it. Returns no row if
/// there is no such plan. Requires the rights of the schema's owner.
struct KeepPlan: Statement {
    typealias Row = String

    let name: String

    static let sql: SQL<Self> = "SELECT p.plan FROM saltern.plans p WHERE p.plan = \(\.name) FOR KEY SHARE"
}

/// Removes a plan, and waits for transactions that assign it (``KeepPlan``). Requires the rights of the schema's owner.
struct RemovePlan: Statement {
    typealias Row = AccountPlan

    let name: String

    static let sql: SQL<Self> = """
        DELETE FROM saltern.plans WHERE plan = \(\.name) RETURNING \(AccountPlan.columns)
        """
}

/// Assigns a plan to an account. Returns no row if either does not exist.
struct AssignPlan: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let plan: String

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET plan = p.plan FROM saltern.plans p
        WHERE a.account_id = \(\.accountID) AND p.plan = \(\.plan)
        RETURNING a.account_id
        """
}
