internal import Postgres

/// Carries out a batch: decides each operation, and when none fails and the plan allows the whole, takes as many
/// revisions as items change, in the order of the operations, writes the items and keeps the counters.
///
/// A put whose content is what is stored and a delete of what is deleted are `unchanged` whatever the precondition
/// says: then this is the retry of a batch whose reply was lost.
struct ApplyBatch: AccountWrite {
    /// Each names another item.
    let operations: [BatchOperation]

    /// What became of the whole.
    enum Verdict: String, Sendable {
        case accepted
        case conflict
        case itemQuota = "items"
        case itemByteQuota = "itemBytes"
        case byteQuota = "bytes"
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

    static let locksAccount = true

    /// Sealed bytes are taken from their arrays where they are compared and stored, and are in no intermediate row.
    static let sql = """
        WITH account AS (
            \(CallersAccount.sql)
        ), operation AS (
            SELECT * FROM unnest($5::uuid[], $6::boolean[], $7::bigint[], $8::text[], $9::text[], $10::integer[],
                $11::bigint[]) WITH ORDINALITY
                AS o(item_id, is_put, if_revision, collection, format, iterations, new_bytes, position)
        ), decided AS (
            SELECT o.*, c.revision AS old_revision,
                CASE WHEN c.deleted = false
                    THEN octet_length(c.body) + coalesce(octet_length(c.title), 0) ELSE 0 END AS old_bytes,
                CASE
                    WHEN NOT o.is_put AND c.deleted THEN 'unchanged'
                    WHEN NOT o.is_put AND c.deleted IS NULL THEN 'not_found'
                    WHEN o.is_put AND c.deleted = false AND c.collection = o.collection AND c.format = o.format
                        AND c.iterations IS NOT DISTINCT FROM o.iterations
                        AND octet_length(c.body) + coalesce(octet_length(c.title), 0) = o.new_bytes
                        AND c.title IS NOT DISTINCT FROM ($12::bytea[])[o.position::integer]
                        AND c.body = ($13::bytea[])[o.position::integer]
                    THEN 'unchanged'
                    WHEN (o.if_revision = 0 AND c.deleted = false)
                        OR (o.if_revision > 0 AND (c.deleted IS DISTINCT FROM false OR c.revision <> o.if_revision))
                    THEN 'precondition_failed'
                    WHEN NOT o.is_put THEN 'deleted'
                    WHEN c.deleted = false THEN 'updated'
                    ELSE 'created'
                END AS outcome
            FROM operation o CROSS JOIN account a
            LEFT JOIN saltern.items c ON c.account_id = $1 AND c.item_id = o.item_id
        ), total AS (
            SELECT count(*) FILTER (WHERE d.outcome IN ('precondition_failed', 'not_found')) AS failures,
                count(*) FILTER (WHERE d.outcome IN ('created', 'updated', 'deleted')) AS changes,
                count(*) FILTER (WHERE d.outcome = 'created') - count(*) FILTER (WHERE d.outcome = 'deleted')
                    AS more_items,
                coalesce(sum(d.new_bytes - d.old_bytes)
                    FILTER (WHERE d.outcome IN ('created', 'updated', 'deleted')), 0)::bigint AS more_bytes,
                coalesce(max(d.new_bytes) FILTER (WHERE d.outcome IN ('created', 'updated')), 0) AS largest
            FROM decided d
        ), verdict AS (
            SELECT a.*, t.changes, t.more_items, t.more_bytes, t.largest,
                CASE
                    WHEN t.failures > 0 THEN 'conflict'
                    WHEN t.largest > a.max_item_bytes THEN 'itemBytes'
                    WHEN t.more_items > 0 AND a.item_count + t.more_items > a.max_items THEN 'items'
                    WHEN t.more_bytes > 0 AND a.item_bytes + t.more_bytes > a.max_bytes THEN 'bytes'
                    ELSE 'accepted'
                END AS verdict
            FROM account a CROSS JOIN total t
        ), counted AS (
            UPDATE saltern.accounts a
            SET revision = a.revision + v.changes, item_count = a.item_count + v.more_items,
                item_bytes = a.item_bytes + v.more_bytes
            FROM verdict v
            WHERE a.account_id = $1 AND a.account_id = v.account_id AND v.verdict = 'accepted' AND v.changes > 0
            RETURNING a.account_id, a.revision - v.changes AS base, v.deleted_days
        ), numbered AS (
            SELECT d.*, n.account_id, n.deleted_days, n.base + row_number() OVER (ORDER BY d.position) AS revision
            FROM decided d CROSS JOIN counted n
            WHERE d.outcome IN ('created', 'updated', 'deleted')
        ), put AS (
            INSERT INTO saltern.items AS i
                (account_id, item_id, revision, deleted, collection, format, iterations, title, body,
                created_at, updated_at)
            SELECT n.account_id, n.item_id, n.revision, false, n.collection, n.format, n.iterations,
                ($12::bytea[])[n.position::integer], ($13::bytea[])[n.position::integer], $3, $3
            FROM numbered n WHERE n.is_put
            ON CONFLICT (account_id, item_id) DO UPDATE
            SET revision = excluded.revision, deleted = excluded.deleted, collection = excluded.collection,
                format = excluded.format, iterations = excluded.iterations, title = excluded.title,
                body = excluded.body, updated_at = excluded.updated_at,
                created_at = CASE WHEN i.deleted THEN excluded.created_at ELSE i.created_at END
        ), \(DeletedContent.keeping(from: "numbered")), buried AS (
            UPDATE saltern.items i
            SET revision = n.revision, deleted = true, format = NULL, iterations = NULL, title = NULL, body = NULL,
                updated_at = $3
            FROM numbered n
            WHERE i.account_id = $1 AND i.account_id = n.account_id AND i.item_id = n.item_id AND NOT n.is_put
        )
        SELECT v.verdict,
            CASE v.verdict WHEN 'items' THEN v.max_items WHEN 'itemBytes' THEN v.max_item_bytes ELSE v.max_bytes END,
            CASE v.verdict WHEN 'items' THEN v.item_count WHEN 'itemBytes' THEN v.largest ELSE v.item_bytes END,
            d.outcome, coalesce(n.revision, d.old_revision)
        FROM verdict v CROSS JOIN decided d LEFT JOIN numbered n ON n.position = d.position
        ORDER BY d.position
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(operations.map(\.id.uuid))
        parameters.append(operations.map { $0.content != nil })
        parameters.append(operations.map(\.ifRevision))
        parameters.append(operations.map { $0.content?.collection.name })
        parameters.append(operations.map { $0.content?.format.rawValue })
        parameters.append(operations.map { $0.content?.iterations })
        parameters.append(operations.map { Int64($0.byteCount) })
        parameters.append(operations.map { $0.content?.title?.bytes })
        parameters.append(operations.map { $0.content?.body.bytes })
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            verdict: try row.next(), allowed: try row.next(), used: try row.next(), outcome: try row.next(),
            revision: try row.next())
    }
}

extension ApplyBatch.Verdict: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { rawValue.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> ApplyBatch.Verdict? {
        String.decode(bytes).flatMap(ApplyBatch.Verdict.init(rawValue:))
    }
}

extension BatchOutcome: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { rawValue.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> BatchOutcome? {
        String.decode(bytes).flatMap(BatchOutcome.init(rawValue:))
    }
}
