internal import Postgres

/// The account row that a change of items works on.
enum CallersAccount {
    /// The row's columns, of the aliases `a` and `p`.
    static let columns: SQLFragment = """
        a.account_id, a.revision, a.item_count, a.item_bytes, a.tombstone_count, a.kept_count, a.kept_bytes,
            a.version_count, a.version_bytes, p.max_items, p.max_item_bytes, p.max_bytes, p.deleted_days
        """

    /// The row, when the caller may change it. Read it in a statement that was preceded by ``AuthenticateForWrite``, so
    /// that it is as the last writer left it.
    static let sql: CallerSQL<Never> = """
        SELECT \(columns)
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        """
}
