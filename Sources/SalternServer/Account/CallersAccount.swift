internal import Postgres

/// Selects the account row for a change of items.
enum CallersAccount {
    /// The row's columns. `a` is the account, `p` its plan.
    static let columns: SQLFragment = """
        a.account_id, a.revision, a.item_count, a.item_bytes, a.tombstone_count, a.kept_count, a.kept_bytes,
            a.version_count, a.version_bytes, p.max_items, p.max_item_bytes, p.max_bytes, p.deleted_days
        """

    /// Selects the row if the caller may change it. It follows ``AuthenticateForWrite``, so it sees the previous
    /// writer's changes.
    static func sql(_ seat: Seat) -> CallerSQL<Never> {
        """
        SELECT \(columns)
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account) AND \(seat.admits) AND \(seat.exists)
        """
    }
}
