internal import Postgres

/// The account row that a change of items works on.
enum CallersAccount {
    /// The row, when the caller may change it. Read it in a statement that was preceded by ``AuthenticateForWrite``, so
    /// that it is as the last writer left it.
    static let sql = """
        SELECT a.account_id, a.revision, a.item_count, a.item_bytes, p.max_items, p.max_item_bytes, p.max_bytes,
            p.deleted_days
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        """
}
