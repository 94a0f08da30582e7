internal import Cryptography
internal import Postgres

/// Decides a batch as its first statement. If no operation fails and the plan allows the whole, it takes a revision for
/// each changed item, in the order of operations, and updates the counters. `ItemTransaction.store(_:_:now:)` completes
/// the batch in the same transaction.
///
/// A put of the stored content and a delete of a deleted item are `unchanged` for any precondition, because the request
/// then repeats one whose reply was lost. Content beyond the budget of ``DeletedContent`` is dropped, oldest first, and
/// so are tombstones beyond ``TombstoneLimit``.
struct ApplyBatch: ItemWrite {
    /// The operations, each on a different item.
    let operations: [BatchOperation]

    var sealedKey: SealedKey { SealedKey(of: operations.compactMap(\.content)) }

    var discarded: [ItemID] { operations.filter { $0.content == nil }.map(\.id) }

    /// The result of the whole batch.
    enum Verdict: String, Sendable, PostgresValue {
        case accepted
        case conflict
        case itemQuota = "items"
        case itemByteQuota = "itemBytes"
        case byteQuota = "bytes"
        /// The items to delete are too long to be moved at once.
        case tooMuchDeleted = "deletedBytes"
        /// Kept contents of deleted items need room. ``Row/allowed`` and ``Row/used`` are the additional rows and
        /// bytes.
        case roomNeeded = "room"
    }

    /// The result of one operation, in the order of operations.
    struct Row: Sendable {
        let verdict: Verdict
        /// The exceeded limit and its usage.
        let allowed: Int64
        let used: Int64
        let outcome: BatchOutcome
        /// The item's revision after the batch, or the present one if the batch was not applied.
        let revision: Int64?
        /// The number of days for which deleted content is kept. Nil if it is not.
        let keptDays: Int32?
        /// The sealed bytes of the item before the batch.
        let storedBytes: Int64
    }

    /// The limit of deleted sealed bytes, which the batch's own statement copies: the standard plan's limit of an
    /// account.
    static let deletedByteLimit: Int64 = 268_435_456

    private var ids: [ItemID] { operations.map(\.id) }
    private var arePuts: [Bool] { operations.map { $0.content != nil } }
    private var ifRevisions: [Int64?] { operations.map(\.ifRevision) }
    private var collections: [String?] { operations.map { $0.content?.collection?.name } }
    private var formats: [String?] { operations.map { $0.content?.format.rawValue } }
    private var iterations: [Int32?] { operations.map { $0.content?.iterations } }
    private var byteCounts: [Int64] { operations.map { Int64($0.byteCount) } }
    private var titleByteCounts: [Int32?] { operations.map { ($0.content?.title?.bytes.count).map { Int32($0) } } }
    private var digests: [[UInt8]?] {
        operations.map { operation in
            operation.content.map { content in
                guard let title = content.title else { return SHA256.hash(content.body.bytes).bytes }
                var hash = SHA256.Incremental()
                hash.update(title.bytes)
                hash.update(content.body.bytes)
                return hash.finalize().bytes
            }
        }
    }

    static let needsLease = true
    /// Other statements send the sealed bytes. Here digests represent them, and only stored items of equal length are
    /// hashed.
    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH account AS (
            \(CallersAccount.sql(seat))
        ), operation AS (
            SELECT * FROM unnest(\(\.ids)::uuid[], \(\.arePuts)::boolean[], \(\.ifRevisions)::bigint[],
                \(\.collections)::text[], \(\.formats)::text[], \(\.iterations)::integer[],
                \(\.byteCounts)::bigint[], \(\.titleByteCounts)::integer[], \(\.digests)::bytea[]) WITH ORDINALITY
                AS o(item_id, is_put, if_revision, collection, format, iterations, new_bytes, title_bytes, digest,
                position)
        ), decided AS (
            SELECT o.*, c.revision AS old_revision, c.collection AS old_collection,
                coalesce(c.deleted, false) AS was_deleted,
                \(SealedSize.bytes(of: "c")) AS old_bytes,
                CASE
                    WHEN NOT o.is_put AND c.deleted THEN 'unchanged'
                    WHEN NOT o.is_put AND c.deleted IS NULL THEN 'not_found'
                    WHEN o.is_put AND c.deleted = false AND c.collection = coalesce(o.collection, c.collection) AND c.format = o.format
                        AND c.iterations IS NOT DISTINCT FROM o.iterations
                        AND \(SealedSize.bytes(of: "c")) = o.new_bytes
                        AND octet_length(c.title) IS NOT DISTINCT FROM o.title_bytes
                        AND sha256(coalesce(c.title, '') || c.body) = o.digest
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
                coalesce(max(d.new_bytes) FILTER (
                    WHERE d.outcome IN ('created', 'updated') AND d.new_bytes > d.old_bytes), 0) AS largest,
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
            RETURNING a.revision - j.changes AS base, j.deleted_days
        ), numbered AS (
            SELECT d.position, n.base + row_number() OVER (ORDER BY d.position) AS revision,
                CASE WHEN s.is_kept THEN n.deleted_days END AS kept_days
            FROM decided d CROSS JOIN counted n LEFT JOIN sized s ON s.item_id = d.item_id
            WHERE d.outcome IN ('created', 'updated', 'deleted')
        ), \(DeletedContent.forgetting(when: "counted"))
        SELECT v.verdict,
            CASE v.verdict WHEN 'items' THEN v.max_items WHEN 'itemBytes' THEN v.max_item_bytes
                WHEN 'room' THEN v.needed_items ELSE v.max_bytes END,
            CASE v.verdict WHEN 'items' THEN v.item_count WHEN 'itemBytes' THEN v.largest
                WHEN 'room' THEN v.needed_bytes ELSE v.item_bytes END,
            d.outcome, coalesce(n.revision, d.old_revision), n.kept_days, d.old_bytes
        FROM (
            SELECT j.max_items, j.max_item_bytes, j.max_bytes, j.item_count, j.item_bytes, j.largest,
                CASE WHEN j.verdict = 'accepted' AND NOT y.is_ready THEN 'room' ELSE j.verdict END AS verdict,
                r.number - j.kept_count AS needed_items, r.bytes - j.kept_bytes AS needed_bytes
            FROM judged j CROSS JOIN room r CROSS JOIN ready y
        ) v CROSS JOIN decided d LEFT JOIN numbered n ON n.position = d.position
        ORDER BY d.position
        """
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores the contents of items that a batch deletes, in place of earlier kept contents.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct ArchiveContents: ItemStep {
    let owner: OwnerID
    let ids: [ItemID]
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        MERGE INTO saltern.deleted_contents k USING (
            SELECT i.account_id, i.item_id, i.collection, i.format, i.iterations, i.title, i.body, i.created_at
            FROM saltern.items i WHERE i.account_id = \(\.owner) AND i.item_id = ANY (\(\.ids)::uuid[])
        ) n ON k.account_id = n.account_id AND k.item_id = n.item_id
        WHEN MATCHED THEN UPDATE
            SET collection = n.collection, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body, created_at = n.created_at, expires_at = \(\.expiresAt)
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, collection, format, iterations, title, body, created_at, expires_at)
            VALUES (n.account_id, n.item_id, n.collection, n.format, n.iterations, n.title, n.body, n.created_at,
                \(\.expiresAt))
        """
}

/// Turns the items that a batch deletes into tombstones. It follows ``ArchiveContents``.
struct WriteTombstones: ItemStep {
    let owner: OwnerID
    let ids: [ItemID]
    let revisions: [Int64]
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.items i
        SET revision = o.revision, deleted = true, format = NULL, iterations = NULL, title = NULL, body = NULL,
            updated_at = \(\.now)
        FROM unnest(\(\.ids)::uuid[], \(\.revisions)::bigint[]) AS o(item_id, revision)
        WHERE i.account_id = \(\.owner) AND i.item_id = o.item_id
        """
}

extension ItemTransaction {
    /// Applies an accepted batch of ``ApplyBatch``, and nothing otherwise.
    func store(
        _ batch: ApplyBatch, _ rows: [ApplyBatch.Row], now: Timestamp
    ) async throws(PostgresError) {
        guard rows.first?.verdict == .accepted else { return }
        var (deleted, kept, created, replaced) = ([ItemID](), [ItemID](), [ItemID](), [ItemID]())
        var revisions: [Int64] = []
        var (keptDays, movedBytes) = (Int32(0), Int64(0))
        var puts = Puts()
        for (operation, row) in zip(batch.operations, rows) {
            guard let revision = row.revision, row.outcome != .unchanged else { continue }
            if let content = operation.content {
                puts.append(operation, content, revision: revision)
                if row.outcome == .created { created.append(operation.id) }
                if row.outcome == .updated { replaced.append(operation.id) }
            } else {
                deleted.append(operation.id)
                revisions.append(revision)
                guard let days = row.keptDays else { continue }
                kept.append(operation.id)
                keptDays = days
                movedBytes += row.storedBytes
            }
        }
        if !deleted.isEmpty {
            enqueue(
                ArchiveContents(owner: owner, ids: kept, expiresAt: now + .seconds(86_400 * Int64(keptDays))))
            enqueue(WriteTombstones(owner: owner, ids: deleted, revisions: revisions, now: now))
        }
        if !replaced.isEmpty { movedBytes += try await keepVersions(of: replaced, now: now) }
        if puts.count > 0 { enqueue(WritePuts(owner: owner, puts: puts, now: now)) }
        if !created.isEmpty { enqueue(ReleaseContents(owner: owner, ids: created, now: now)) }
        // A long commit would be treated as one that does not end.
        if puts.byteCount + movedBytes > Authorization.sharedByteLimit { try await executeWaiting() }
    }
}

/// The statements of sync.
extension StatementList {
    static var sync: [any Statement.Type] {
        [
            Guarded<ApplyBatch>.self, ArchiveContents.self, WriteTombstones.self, ReleaseContents.self,
            Guarded<MeasurePuts>.self, CountPuts.self, WritePuts.self, Owned<FindChanges>.self,
            Owned<FindChangeHeaders>.self,
        ]
    }
}
