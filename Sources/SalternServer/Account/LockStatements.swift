internal import Postgres

/// Locks an account's row against other writers until the transaction ends, as everybody does first who writes what
/// belongs to the account. The statement that follows has a snapshot of its own: it sees what the one before left.
struct LockAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR NO KEY UPDATE"
}

/// Locks an account's row against everything, until the transaction ends: a log-in takes `FOR KEY SHARE`, a write
/// `FOR NO KEY UPDATE`, and both wait.
struct LockAccountWholly: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR UPDATE"
}

/// Sees to it that an account stays until the transaction ends. Writes and log-ins go on; a deletion and a change of the
/// credential wait, or are waited for.
struct KeepAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR KEY SHARE"
}

/// Locks the account that owns a share, as everybody does first who changes one in the owner's name; how many sealed
/// bytes its plan allows. No row when the account is locked or gone.
struct LockShareOwner: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let sql: SQL<Self> = """
        SELECT p.max_item_bytes FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(\.accountID) AND a.locked_at IS NULL
        FOR NO KEY UPDATE OF a
        """
}

/// Plans each statement of the transaction for its own parameters, and for the tables as they are. A plan that PostgreSQL has
/// kept may be of a time when the tables were small: it would look for a few rows among all of the account. For statements
/// that take long enough for the planning not to matter.
struct PlanForParameters: Statement {
    typealias Row = String

    static let sql: SQL<Self> = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)"
}
