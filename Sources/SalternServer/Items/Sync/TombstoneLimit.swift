internal import Postgres

/// Limits the tombstones of an account: the plan's items and an allowance, so that small plans remain usable. Beyond it
/// the oldest are purged, and cursors below them expire.
enum TombstoneLimit {
    /// The allowance above the plan's items.
    static let allowance = 1_000
    /// The number of tombstones purged beyond the necessary. The next deletions then purge none and stay on the short
    /// path.
    static let reserve = 63
    /// Maximum number purged by one statement: more than it can create, so that a lowered plan is reached as well.
    private static let slice = 1_000

    /// Parts of a `WITH` that purge the oldest tombstones beyond the limit. `purge` has their number and highest
    /// revision.
    ///
    /// The part `account` has ``CallersAccount/columns``.
    ///
    /// - Parameters:
    ///   - added: The number of new tombstones, as a scalar expression.
    ///   - gate: A condition that is true if the change is made.
    ///   - items: An array of items to leave unchanged.
    static func purging<Root>(
        adding added: SQLFragment, when gate: SQLFragment, beside items: CallerSQL<Root>
    ) -> CallerSQL<Root> {
        """
        purged AS (
            DELETE FROM saltern.items t
            USING (
                SELECT o.item_id FROM saltern.items o
                WHERE o.account_id = \(.account) AND o.deleted AND o.revision > 0 AND o.item_id <> ALL (\(items))
                    AND \(gate)
                ORDER BY o.revision LIMIT (
                    SELECT CASE WHEN e.number > 0 THEN least(e.number + \(reserve), \(slice)) ELSE 0 END
                    FROM (
                        SELECT a.tombstone_count + \(added) - a.max_items - \(allowance) AS number FROM account a
                    ) e)
            ) o
            WHERE t.account_id = \(.account) AND t.item_id = o.item_id AND t.deleted
            RETURNING t.revision
        ), purge AS (
            SELECT count(*) AS number, coalesce(max(p.revision), 0) AS highest FROM purged p
        )
        """
    }
}
