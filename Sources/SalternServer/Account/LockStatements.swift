internal import Postgres

/// Locks an account's row against other writers until the transaction ends. All writers of the account's rows take this
/// lock first. The next statement has a snapshot of its own, so it sees the previous writer's changes.
struct LockAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR NO KEY UPDATE"
}

/// Locks an account's row against all other locks until the transaction ends. Log-ins (`FOR KEY SHARE`) and writes
/// (`FOR NO KEY UPDATE`) wait.
struct LockAccountWholly: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR UPDATE"
}

/// Prevents the deletion of an account until the transaction ends. Writes and log-ins continue; a deletion or a change
/// of the credential waits, or is waited for.
struct KeepAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR KEY SHARE"
}

/// Locks the account that owns a share, before a change in the owner's name. Returns the plan's limit of sealed bytes,
/// and no row if the account is locked or gone.
struct LockShareOwner: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let sql: SQL<Self> = """
        SELECT p.max_item_bytes FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(\.accountID) AND a.locked_at IS NULL
        FOR NO KEY UPDATE OF a
        """
}

/// Makes PostgreSQL plan each statement of the transaction for its own parameters.
///
/// A cached plan may date from a time of small tables, and would scan all of an account's rows for a few. It is for
/// statements long enough to make the planning time negligible.
struct PlanForParameters: Statement {
    typealias Row = String

    static let sql: SQL<Self> = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)"
}
