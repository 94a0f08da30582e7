internal import Postgres

/// How many tombstones an account may have: as many as its plan allows items, and some more, so that a plan of a few
/// items can be worked with for a while. Beyond it the oldest go, and with them the cursors that have not seen them.
enum TombstoneLimit {
    /// More than the plan's items.
    static let allowance = 1_000
    /// How many more than necessary go at once, so that the next deletions remove none: they stay on the short path.
    static let reserve = 63
    /// How many go in one statement: more than it can make, so that a lowered plan is reached too.
    private static let slice = 1_000

    /// Parts of a `WITH` that remove the oldest tombstones when there are too many; `purge` tells how many they were and
    /// the highest of their revisions.
    ///
    /// The part `account` has ``CallersAccount/columns``.
    ///
    /// - Parameters:
    ///   - added: How many more tombstones there are afterwards, as a scalar expression.
    ///   - gate: A condition that is true when the change is made.
    ///   - items: An array of items that are not to be touched.
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
