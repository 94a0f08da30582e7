internal import Postgres

/// Puts back what a deleted item held: decides, takes the account's next revision, writes the item and keeps the
/// counters, all at once.
///
/// An item that is as it was kept is `unchanged` whatever the precondition says: then this is the retry of a request
/// whose reply was lost. What was kept stays until it expires.
struct UnburyItem: AccountWrite {
    typealias Row = ItemChange

    let id: ItemID
    let precondition: Precondition

    /// What it moves within the database can be long.
    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH account AS (
            \(CallersAccount.sql)
        ), current AS (
            SELECT i.* FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id = \(\.id)
        ), kept AS (
            SELECT k.*, \(SealedSize.bytes(of: "k")) AS bytes
            FROM saltern.deleted_contents k
            WHERE k.account_id = \(.account) AND k.item_id = \(\.id) AND k.expires_at > \(.now)
        ), decision AS (
            SELECT a.*, coalesce(k.bytes, 0) AS new_bytes, CASE WHEN c.deleted THEN 1 ELSE 0 END AS fewer_tombstones,
                CASE
                    WHEN c.deleted = false AND c.collection = k.collection AND c.format = k.format
                        AND c.iterations IS NOT DISTINCT FROM k.iterations AND c.title IS NOT DISTINCT FROM k.title
                        AND c.body = k.body
                    THEN 'unchanged'
                    WHEN c.deleted = false THEN 'precondition_failed'
                    WHEN c.account_id IS NULL AND k.account_id IS NULL THEN 'not_found'
                    WHEN k.account_id IS NULL THEN 'gone'
                    WHEN \(\.precondition.parameter) > 0 AND c.revision IS DISTINCT
                        FROM \(\.precondition.parameter) THEN 'precondition_failed'
                    WHEN k.bytes > a.max_item_bytes THEN 'itemBytes'
                    WHEN a.item_count >= a.max_items THEN 'items'
                    WHEN a.item_bytes + k.bytes > a.max_bytes THEN 'bytes'
                    ELSE 'restored'
                END AS outcome
            FROM account a
            LEFT JOIN current c ON c.account_id = a.account_id
            LEFT JOIN kept k ON k.account_id = a.account_id
        ), counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count + 1,
                item_bytes = a.item_bytes + d.new_bytes,
                tombstone_count = greatest(a.tombstone_count - d.fewer_tombstones, 0)
            FROM decision d
            WHERE a.account_id = \(.account) AND a.account_id = d.account_id AND d.outcome = 'restored'
            RETURNING a.account_id, a.revision
        ), written AS (
            INSERT INTO saltern.items
                (account_id, item_id, revision, deleted, collection, format, iterations, title, body,
                created_at, updated_at)
            SELECT k.account_id, k.item_id, n.revision, false, k.collection, k.format, k.iterations, k.title, k.body,
                k.created_at, \(.now)
            FROM counted n JOIN kept k ON k.account_id = n.account_id
            ON CONFLICT (account_id, item_id) DO UPDATE
            SET revision = excluded.revision, deleted = excluded.deleted, collection = excluded.collection,
                format = excluded.format, iterations = excluded.iterations, title = excluded.title,
                body = excluded.body, created_at = excluded.created_at, updated_at = excluded.updated_at
            RETURNING account_id, item_id, revision, collection, created_at, updated_at, format, iterations, title, body
        )
        SELECT d.outcome,
            CASE d.outcome WHEN 'items' THEN d.max_items WHEN 'itemBytes' THEN d.max_item_bytes ELSE d.max_bytes END,
            CASE d.outcome WHEN 'items' THEN d.item_count WHEN 'itemBytes' THEN d.new_bytes ELSE d.item_bytes END,
            i.account_id IS NOT NULL, \(ItemInParts.columns)
        FROM decision d LEFT JOIN (
            SELECT w.* FROM written w
            UNION ALL
            SELECT c.account_id, c.item_id, c.revision, c.collection, c.created_at, c.updated_at, c.format,
                c.iterations, c.title, c.body
            FROM current c WHERE NOT EXISTS (SELECT FROM written)
        ) i ON i.account_id = d.account_id
        """
}
