internal import Postgres

/// One live item.
struct FindItem: AccountRead {
    let id: ItemID

    static let sql = """
        SELECT \(Item.columns) FROM saltern.items i
        WHERE i.account_id = $1 AND i.item_id = $2 AND NOT i.deleted
        """

    func bind(to parameters: inout Parameters) { parameters.append(id) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Item { try Item(row: &row) }
}

/// What a change of an item works on, when the caller may: the account, its plan, and the item as it is. The account's
/// row was locked before.
private let callersAccountAndItem = """
    FROM saltern.accounts a
    JOIN saltern.plans p ON p.plan = a.plan
    LEFT JOIN saltern.items i ON i.account_id = a.account_id AND i.account_id = $1 AND i.item_id = $5
    WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
    """

/// The sealed bytes of the item as it is.
private let storedBytes = "(coalesce(octet_length(i.body), 0) + coalesce(octet_length(i.title), 0))"

/// Creates or replaces an item: decides, takes the account's next revision, writes the item and keeps the counters,
/// all at once.
///
/// Equal content is `unchanged` whatever the precondition says: then this is the retry of a request whose reply was
/// lost.
struct WriteItem: AccountWrite {
    let id: ItemID
    let precondition: Precondition
    let collection: CollectionName
    let format: SealedFormat
    let iterations: Int32?
    let title: SealedBytes?
    let body: SealedBytes

    static let locksAccount = true
    static let sql = """
        WITH decision AS (
            SELECT a.account_id, a.item_count, a.item_bytes, p.max_items, p.max_item_bytes, p.max_bytes,
                i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations, i.title, i.body,
                CASE WHEN i.deleted = false THEN 0 ELSE 1 END AS more_items,
                $12 - \(storedBytes) AS more_bytes,
                CASE
                    WHEN i.deleted = false AND i.collection = $7 AND i.format = $8
                        AND i.iterations IS NOT DISTINCT FROM $9 AND i.title IS NOT DISTINCT FROM $10 AND i.body = $11
                    THEN 'unchanged'
                    WHEN ($6 = 0 AND i.deleted = false)
                        OR ($6 = -1 AND i.deleted IS DISTINCT FROM false)
                        OR ($6 > 0 AND (i.deleted IS DISTINCT FROM false OR i.revision <> $6))
                    THEN 'precondition_failed'
                    WHEN $12 > p.max_item_bytes THEN 'itemBytes'
                    WHEN i.deleted IS DISTINCT FROM false AND a.item_count >= p.max_items THEN 'items'
                    WHEN $12 > \(storedBytes) AND a.item_bytes + $12 - \(storedBytes) > p.max_bytes THEN 'bytes'
                    WHEN i.deleted = false THEN 'updated'
                    ELSE 'created'
                END AS outcome
            \(callersAccountAndItem)
        ), counted AS (
            UPDATE saltern.accounts a
            SET revision = a.revision + 1, item_count = a.item_count + d.more_items,
                item_bytes = a.item_bytes + d.more_bytes
            FROM decision d
            WHERE a.account_id = $1 AND a.account_id = d.account_id AND d.outcome IN ('created', 'updated')
            RETURNING a.account_id, a.revision
        ), written AS (
            INSERT INTO saltern.items AS i
                (account_id, item_id, revision, deleted, collection, format, iterations, title, body,
                created_at, updated_at)
            SELECT n.account_id, $5, n.revision, false, $7, $8, $9, $10, $11, $3, $3 FROM counted n
            ON CONFLICT (account_id, item_id) DO UPDATE
            SET revision = excluded.revision, deleted = excluded.deleted, collection = excluded.collection,
                format = excluded.format, iterations = excluded.iterations, title = excluded.title,
                body = excluded.body, updated_at = excluded.updated_at,
                created_at = CASE WHEN i.deleted THEN excluded.created_at ELSE i.created_at END
            RETURNING i.account_id, i.revision, i.created_at, i.updated_at
        )
        SELECT d.outcome,
            CASE d.outcome WHEN 'items' THEN d.max_items WHEN 'itemBytes' THEN d.max_item_bytes ELSE d.max_bytes END,
            CASE d.outcome WHEN 'items' THEN d.item_count WHEN 'itemBytes' THEN $12 ELSE d.item_bytes END,
            coalesce(w.revision, d.revision) IS NOT NULL,
            $5, coalesce(w.revision, d.revision), coalesce(CASE WHEN w.revision IS NULL THEN d.collection END, $7),
            coalesce(w.created_at, d.created_at), coalesce(w.updated_at, d.updated_at),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.format END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.iterations END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.title END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.body END
        FROM decision d LEFT JOIN written w ON w.account_id = d.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(precondition.parameter)
        parameters.append(collection.name)
        parameters.append(format.rawValue)
        parameters.append(iterations)
        parameters.append(title?.bytes)
        parameters.append(body.bytes)
        parameters.append(Int64(body.bytes.count + (title?.bytes.count ?? 0)))
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ItemChange { try ItemChange(row: &row) }
}

/// Leaves a tombstone in place of an item: takes the account's next revision, puts the content where it can be restored
/// and lowers the counters, all at once.
struct BuryItem: AccountWrite {
    let id: ItemID
    let precondition: Precondition

    static let locksAccount = true
    static let sql = """
        WITH decision AS (
            SELECT a.account_id, p.deleted_days, i.revision, i.collection, i.created_at, i.updated_at, i.format,
                i.iterations, i.title, i.body, \(storedBytes) AS bytes,
                CASE
                    WHEN i.deleted IS DISTINCT FROM false THEN 'not_found'
                    WHEN $6 > 0 AND i.revision <> $6 THEN 'precondition_failed'
                    ELSE 'deleted'
                END AS outcome
            \(callersAccountAndItem)
        ), counted AS (
            UPDATE saltern.accounts a
            SET revision = a.revision + 1, item_count = a.item_count - 1, item_bytes = a.item_bytes - d.bytes
            FROM decision d
            WHERE a.account_id = $1 AND a.account_id = d.account_id AND d.outcome = 'deleted'
            RETURNING a.account_id, a.revision, $5 AS item_id, d.outcome, d.deleted_days
        ), \(DeletedContent.keeping(from: "counted")), buried AS (
            UPDATE saltern.items i
            SET revision = n.revision, deleted = true, format = NULL, iterations = NULL, title = NULL, body = NULL,
                updated_at = $3
            FROM counted n
            WHERE i.account_id = $1 AND i.account_id = n.account_id AND i.item_id = $5
            RETURNING i.account_id, i.revision, i.updated_at
        )
        SELECT d.outcome, 0::bigint, 0::bigint, d.revision IS NOT NULL,
            $5, coalesce(b.revision, d.revision), d.collection, d.created_at, coalesce(b.updated_at, d.updated_at),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.format END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.iterations END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.title END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.body END
        FROM decision d LEFT JOIN buried b ON b.account_id = d.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(precondition.parameter)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ItemChange { try ItemChange(row: &row) }
}
