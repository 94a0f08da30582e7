/// What deleted items held. It is kept as long as the plan says, shown by no listing, and no part of the usage.
enum DeletedContent {
    /// Parts of a `WITH` that move the content of items away before they become tombstones. What an earlier deletion
    /// left is replaced, or dropped when the plan keeps nothing.
    ///
    /// - Parameter source: A part with `item_id`, `outcome` (`deleted` for those that are meant) and `deleted_days`.
    static func keeping(from source: String) -> String {
        """
        kept AS (
            INSERT INTO saltern.deleted_contents
                (account_id, item_id, collection, format, iterations, title, body, created_at, expires_at)
            SELECT i.account_id, i.item_id, i.collection, i.format, i.iterations, i.title, i.body, i.created_at,
                $3 + make_interval(days => n.deleted_days)
            FROM \(source) n JOIN saltern.items i ON i.account_id = $1 AND i.item_id = n.item_id
            WHERE n.outcome = 'deleted' AND n.deleted_days > 0
            ON CONFLICT (account_id, item_id) DO UPDATE
            SET collection = excluded.collection, format = excluded.format, iterations = excluded.iterations,
                title = excluded.title, body = excluded.body, created_at = excluded.created_at,
                expires_at = excluded.expires_at
        ), forgotten AS (
            DELETE FROM saltern.deleted_contents k USING \(source) n
            WHERE k.account_id = $1 AND k.item_id = n.item_id AND n.outcome = 'deleted' AND n.deleted_days = 0
        )
        """
    }
}
