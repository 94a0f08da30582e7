internal import Postgres

/// Carries out a batch: decides each operation, and when none fails and the plan allows the whole, takes as many
/// revisions as items change, in the order of the operations, writes the items and keeps the counters.
///
/// A put whose content is what is stored and a delete of what is deleted are `unchanged` whatever the precondition
/// says: then this is the retry of a batch whose reply was lost. What is kept beyond the budget of ``DeletedContent`` goes,
/// the oldest first, and so do tombstones beyond ``TombstoneLimit``.
struct ApplyBatch: AccountWrite {
    /// Each names another item.
    let operations: [BatchOperation]

    /// What became of the whole.
    enum Verdict: String, Sendable, PostgresValue {
        case accepted
        case conflict
        case itemQuota = "items"
        case itemByteQuota = "itemBytes"
        case byteQuota = "bytes"
        /// The items that it deletes are too long to be moved away at once.
        case tooMuchDeleted = "deletedBytes"
        /// What is to be kept of deleted items has too little room; ``Row/allowed`` and ``Row/used`` are how many more
        /// rows and bytes there would be.
        case roomNeeded = "room"
    }

    /// What became of one operation, in the order of the operations.
    struct Row: Sendable {
        let verdict: Verdict
        /// The limit that was hit, and how much of it is used.
        let allowed: Int64
        let used: Int64
        let outcome: BatchOutcome
        /// The item's revision after the batch, or as it is when the batch was not carried out.
        let revision: Int64?
    }

    /// How many sealed bytes a batch may delete: what is kept of them is copied in the batch's own statement. As much as
    /// the standard plan allows an account.
    static let deletedByteLimit: Int64 = 268_435_456

    private var ids: [ItemID] { operations.map(\.id) }
    private var arePuts: [Bool] { operations.map { $0.content != nil } }
    private var ifRevisions: [Int64?] { operations.map(\.ifRevision) }
    private var collections: [String?] { operations.map { $0.content?.collection.name } }
    private var formats: [String?] { operations.map { $0.content?.format.rawValue } }
    private var iterations: [Int32?] { operations.map { $0.content?.iterations } }
    private var byteCounts: [Int64] { operations.map { Int64($0.byteCount) } }
    private var titles: [[UInt8]?] { operations.map { $0.content?.title?.bytes } }
    private var bodies: [[UInt8]?] { operations.map { $0.content?.body.bytes } }

    static let needsLease = true
    /// Sealed bytes are taken from their arrays where they are compared and stored, and are in no intermediate row.
    static let sql: CallerSQL<Self> = """
        WITH account AS (
            \(CallersAccount.sql)
        ), operation AS (
            SELECT * FROM unnest(\(\.ids)::uuid[], \(\.arePuts)::boolean[], \(\.ifRevisions)::bigint[],
                \(\.collections)::text[], \(\.formats)::text[], \(\.iterations)::integer[],
                \(\.byteCounts)::bigint[]) WITH ORDINALITY
                AS o(item_id, is_put, if_revision, collection, format, iterations, new_bytes, position)
        ), decided AS (
            SELECT o.*, c.revision AS old_revision, c.collection AS old_collection,
                coalesce(c.deleted, false) AS was_deleted,
                \(SealedSize.bytes(of: "c")) AS old_bytes,
                CASE
                    WHEN NOT o.is_put AND c.deleted THEN 'unchanged'
                    WHEN NOT o.is_put AND c.deleted IS NULL THEN 'not_found'
                    WHEN o.is_put AND c.deleted = false AND c.collection = o.collection AND c.format = o.format
                        AND c.iterations IS NOT DISTINCT FROM o.iterations
                        AND \(SealedSize.bytes(of: "c")) = o.new_bytes
                        AND c.title IS NOT DISTINCT FROM (\(\.titles)::bytea[])[o.position::integer]
                        AND c.body = (\(\.bodies)::bytea[])[o.position::integer]
                    THEN 'unchanged'
                    WHEN (o.if_revision = 0 AND c.deleted = false)
                        OR (o.if_revision > 0 AND (c.deleted IS DISTINCT FROM false OR c.revision <> o.if_revision))
                    THEN 'precondition_failed'
                    WHEN NOT o.is_put THEN 'deleted'
                    WHEN c.deleted = false THEN 'updated'
                    ELSE 'created'
                END AS outcome
            FROM operation o CROSS JOIN account a LEFT JOIN LATERAL (
                SELECT i.* FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id = o.item_id OFFSET 0
            ) c ON true
        ), total AS (
            SELECT count(*) FILTER (WHERE d.outcome IN ('precondition_failed', 'not_found')) AS failures,
                count(*) FILTER (WHERE d.outcome IN ('created', 'updated', 'deleted')) AS changes,
                count(*) FILTER (WHERE d.outcome = 'created') - count(*) FILTER (WHERE d.outcome = 'deleted')
                    AS more_items,
                count(*) FILTER (WHERE d.outcome = 'deleted')
                    - count(*) FILTER (WHERE d.outcome = 'created' AND d.was_deleted) AS more_tombstones,
                coalesce(sum(d.new_bytes - d.old_bytes)
                    FILTER (WHERE d.outcome IN ('created', 'updated', 'deleted')), 0)::bigint AS more_bytes,
                coalesce(max(d.new_bytes) FILTER (WHERE d.outcome IN ('created', 'updated')), 0) AS largest,
                coalesce(sum(d.old_bytes) FILTER (WHERE d.outcome = 'deleted'), 0)::bigint AS deleted_bytes
            FROM decided d
        ), judged AS (
            SELECT a.*, t.changes, t.more_items, t.more_tombstones, t.more_bytes, t.largest, t.deleted_bytes,
                CASE
                    WHEN t.failures > 0 THEN 'conflict'
                    WHEN t.largest > a.max_item_bytes THEN 'itemBytes'
                    WHEN t.deleted_bytes > \(deletedByteLimit) THEN 'deletedBytes'
                    WHEN t.more_items > 0 AND a.item_count + t.more_items > a.max_items THEN 'items'
                    WHEN t.more_bytes > 0 AND a.item_bytes + t.more_bytes > a.max_bytes THEN 'bytes'
                    ELSE 'accepted'
                END AS verdict
            FROM account a CROSS JOIN total t
        ), leaving AS (
            SELECT d.item_id, d.old_bytes AS bytes, d.position
            FROM decided d CROSS JOIN judged j
            WHERE d.outcome = 'deleted' AND j.verdict = 'accepted'
        ), \(DeletedContent.makingRoom(dropping: DeletedContent.manyDrops)),
        accepted AS (
            SELECT j.* FROM judged j CROSS JOIN ready y WHERE j.verdict = 'accepted' AND y.is_ready AND j.changes > 0
        ), \(TombstoneLimit.purging(
            adding: "(SELECT j.more_tombstones FROM accepted j)", when: "EXISTS (SELECT FROM accepted)",
            beside: "\(\.ids)::uuid[]")),
        counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision", by: "j.changes")),
                item_count = a.item_count + j.more_items,
                item_bytes = a.item_bytes + j.more_bytes,
                tombstone_count = greatest(a.tombstone_count + j.more_tombstones - g.number, 0),
                purged_revision = greatest(a.purged_revision, g.highest),
                kept_count = greatest(r.number - y.number, 0), kept_bytes = greatest(r.bytes - y.bytes, 0)
            FROM accepted j CROSS JOIN room r CROSS JOIN ready y CROSS JOIN purge g
            WHERE a.account_id = \(.account)
            RETURNING a.account_id, a.revision - j.changes AS base, j.deleted_days
        ), numbered AS (
            SELECT d.*, n.account_id, n.base + row_number() OVER (ORDER BY d.position) AS revision
            FROM decided d CROSS JOIN counted n
            WHERE d.outcome IN ('created', 'updated', 'deleted')
        ), \(DeletedContent.keeping(when: "counted")), written AS (
            INSERT INTO saltern.items AS i
                (account_id, item_id, revision, deleted, collection, format, iterations, title, body,
                created_at, updated_at)
            SELECT n.account_id, n.item_id, n.revision, NOT n.is_put, coalesce(n.collection, n.old_collection), n.format,
                n.iterations, (\(\.titles)::bytea[])[n.position::integer], (\(\.bodies)::bytea[])[n.position::integer],
                    \(.now), \(.now)
            FROM numbered n
            ON CONFLICT (account_id, item_id) DO UPDATE
            SET revision = excluded.revision, deleted = excluded.deleted, collection = excluded.collection,
                format = excluded.format, iterations = excluded.iterations, title = excluded.title,
                body = excluded.body, updated_at = excluded.updated_at,
                created_at = CASE WHEN i.deleted THEN excluded.created_at ELSE i.created_at END
        )
        SELECT v.verdict,
            CASE v.verdict WHEN 'items' THEN v.max_items WHEN 'itemBytes' THEN v.max_item_bytes
                WHEN 'room' THEN v.needed_items ELSE v.max_bytes END,
            CASE v.verdict WHEN 'items' THEN v.item_count WHEN 'itemBytes' THEN v.largest
                WHEN 'room' THEN v.needed_bytes ELSE v.item_bytes END,
            d.outcome, coalesce(n.revision, d.old_revision)
        FROM (
            SELECT j.max_items, j.max_item_bytes, j.max_bytes, j.item_count, j.item_bytes, j.largest,
                CASE WHEN j.verdict = 'accepted' AND NOT y.is_ready THEN 'room' ELSE j.verdict END AS verdict,
                r.number - j.kept_count AS needed_items, r.bytes - j.kept_bytes AS needed_bytes
            FROM judged j CROSS JOIN room r CROSS JOIN ready y
        ) v CROSS JOIN decided d LEFT JOIN numbered n ON n.position = d.position
        ORDER BY d.position
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
