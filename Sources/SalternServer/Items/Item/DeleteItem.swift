internal import HTTPCore
internal import Postgres

/// `DELETE /v1/items/{id}`: replaces the item by a tombstone, which still syncs.
struct DeleteItem: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: false)
        var decision = DecideDeletion(id: id, precondition: preconditions.current)
        let (owner, now) = (items.owner, items.now)
        var keep = ArchiveContent(decision: decision, owner: owner, now: now)
        var leave = WriteTombstone(decision: decision, owner: owner, now: now)
        let (burials, headers) = try await items.writeOnShortPath(
            DeleteOneItem(decision: decision), followedBy: keep, leave)
        if let days = burials.first?.days, let header = headers.first {
            let end = header.updatedAt + .seconds(86_400 * Int64(days))
            return Self.reply(until: end) { header.write(isDeleted: true, to: &$0) }
        }
        while true {
            let rows = try await items.write(decision, followedBy: keep, leave).first
            if let room = rows.first?.neededRoom {
                try await items.makeRoom(room)
                continue
            }
            if rows.first?.change.allowsAnother(of: &preconditions) ?? false {
                decision = DecideDeletion(id: id, precondition: preconditions.current)
                keep = ArchiveContent(decision: decision, owner: owner, now: now)
                leave = WriteTombstone(decision: decision, owner: owner, now: now)
                continue
            }
            let tombstone = try ItemChange.accepted(rows.map(\.change), items).reply.item
            return Self.reply(until: rows.first?.restorableUntil) { tombstone.write(to: &$0) }
        }
    }

    private static func reply(until end: Timestamp?, _ tombstone: (inout JSONWriter) -> Void) -> Response {
        .json { writer in
            writer.object { writer in
                tombstone(&writer)
                if let end { writer.member("restorableUntil", end) }
            }
        }
    }
}

/// Decides a deletion of an item as the first of three statements: takes the account's next revision and lowers the
/// counters.
///
/// Content beyond the budget of ``DeletedContent`` is dropped, oldest first, and so are tombstones beyond
/// ``TombstoneLimit``. ``ArchiveContent`` then stores the content for a restore, and ``WriteTombstone`` replaces the
/// item by a tombstone.
struct DecideDeletion: ItemWrite {
    let id: ItemID
    let precondition: Precondition
    let writer = Writer()

    /// Tokens for the statements that follow, one of which is stored in the account's row. It is ``first`` if no
    /// content is kept, and otherwise one more than the days for which it is kept.
    struct Writer: Sendable {
        let first = Int64.random(in: .min >> 12 ... .max >> 12) << 12
        /// The days of a plan are ten years at most.
        var last: Int64 { first + 4_095 }
    }

    struct Row: Sendable {
        /// The missing room for kept content. If set, nothing was changed.
        let neededRoom: NeededRoom?
        /// The latest time of a restore. Nil if the content is not kept.
        let restorableUntil: Timestamp?
        let change: ItemChange
    }

    var discarded: [ItemID] { [id] }

    /// Both the kept content and the dropping of others can take long.
    static let needsLease = true
    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH account AS (
            \(CallersAccount.sql(seat))
        ), decision AS (
            SELECT a.account_id, i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations, i.title,
                i.body, \(SealedSize.bytes(of: "i")) AS bytes,
                CASE
                    WHEN i.deleted IS DISTINCT FROM false THEN 'not_found'
                    WHEN \(\.precondition.parameter) > 0 AND i.revision <> \(\.precondition.parameter)
                        THEN 'precondition_failed'
                    ELSE 'deleted'
                END AS outcome
            FROM account a LEFT JOIN saltern.items i ON i.account_id = \(.account) AND i.item_id = \(\.id)
        ), leaving AS (
            SELECT \(\.id)::uuid AS item_id, d.bytes, 1 AS position FROM decision d WHERE d.outcome = 'deleted'
        ), \(DeletedContent.makingRoom(dropping: DeletedContent.fewDrops)),
        \(TombstoneLimit.purging(
            adding: "1", when: "EXISTS (SELECT FROM ready y, leaving WHERE y.is_ready)",
            beside: "ARRAY[\(\.id)::uuid]")),
        counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count - 1,
                item_bytes = a.item_bytes - s.bytes,
                tombstone_count = greatest(a.tombstone_count + 1 - g.number, 0),
                purged_revision = greatest(a.purged_revision, g.highest),
                kept_count = greatest(r.number - y.number, 0), kept_bytes = greatest(r.bytes - y.bytes, 0),
                writer = \(\.writer.first)::bigint + CASE WHEN s.is_kept THEN 1 + o.deleted_days ELSE 0 END
            FROM account o CROSS JOIN sized s CROSS JOIN room r CROSS JOIN ready y CROSS JOIN purge g
            WHERE a.account_id = \(.account) AND y.is_ready
            RETURNING a.account_id, a.revision
        ), \(DeletedContent.forgetting(when: "counted"))
        SELECT NOT y.is_ready, r.number - a.kept_count, r.bytes - a.kept_bytes,
            (SELECT \(.now) + make_interval(days => a.deleted_days) FROM sized s WHERE s.is_kept),
            d.outcome, 0::bigint, 0::bigint, d.revision IS NOT NULL,
            \(\.id)::uuid, coalesce(n.revision, d.revision), d.collection, d.created_at,
            CASE WHEN n.revision IS NULL THEN d.updated_at ELSE \(.now) END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.format END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.iterations END,
            \(ItemInParts.sealedColumns("d", when: "d.outcome = 'precondition_failed'"))
        FROM decision d CROSS JOIN account a CROSS JOIN room r CROSS JOIN ready y
        LEFT JOIN counted n ON n.account_id = d.account_id
        """
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            neededRoom: try NeededRoom(row: &row), restorableUntil: try row.next(), change: try ItemChange(row: &row))
    }
}

/// Stores an item's content for a restore, in place of earlier kept content, if ``DecideDeletion`` or ``DeleteOneItem``
/// has decided so.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster. The days come
/// from the account's row, because a `MERGE` that reads the plan would run on the coordinating node.
struct ArchiveContent: ItemStep {
    let decision: DecideDeletion
    let owner: OwnerID
    let now: Timestamp

    /// The content does not come from the client.
    var bytesInGroup: Int? { 128 }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.deleted_contents k USING (
            SELECT i.account_id, i.collection, i.format, i.iterations, i.title, i.body, i.created_at,
                (\(\.now)::timestamptz AT TIME ZONE 'UTC'
                    + make_interval(days => (a.writer - \(\.decision.writer.first) - 1)::integer)) AT TIME ZONE 'UTC'
                    AS expires_at
            FROM saltern.accounts a JOIN saltern.items i
                ON i.account_id = a.account_id AND i.account_id = \(\.owner) AND i.item_id = \(\.decision.id)
            WHERE a.account_id = \(\.owner) AND a.writer > \(\.decision.writer.first)
                AND a.writer <= \(\.decision.writer.last)
        ) n ON k.account_id = n.account_id AND k.item_id = \(\.decision.id)
        WHEN MATCHED THEN UPDATE
            SET collection = n.collection, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body, created_at = n.created_at, expires_at = n.expires_at
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, collection, format, iterations, title, body, created_at, expires_at)
            VALUES (n.account_id, \(\.decision.id), n.collection, n.format, n.iterations, n.title, n.body,
                n.created_at, n.expires_at)
        """
}

/// Turns an item into a tombstone if ``DecideDeletion`` or ``DeleteOneItem`` has counted its deletion. It follows
/// ``ArchiveContent``.
struct WriteTombstone: ItemStep {
    typealias Row = ItemHeader

    let decision: DecideDeletion
    let owner: OwnerID
    let now: Timestamp

    var bytesInGroup: Int? { 128 }

    static let sql: SQL<Self> = """
        UPDATE saltern.items i
        SET revision = a.revision, deleted = true, format = NULL, iterations = NULL, title = NULL, body = NULL,
            updated_at = \(\.now)
        FROM saltern.accounts a
        WHERE a.account_id = \(\.owner) AND a.writer BETWEEN \(\.decision.writer.first) AND \(\.decision.writer.last)
            AND i.account_id = \(\.owner) AND i.item_id = \(\.decision.id)
        RETURNING \(ItemHeader.columns)
        """
}

/// The room for kept content that is missing after the few drops of one statement.
struct NeededRoom: Sendable {
    /// Rows and their sealed bytes. They can be negative.
    let items: Int64
    let bytes: Int64

    init(items: Int64, bytes: Int64) {
        self.items = items
        self.bytes = bytes
    }

    /// Reads three columns: a flag that room is needed, rows and bytes.
    init?(row: inout RowReader) throws(PostgresError) {
        let isNeeded: Bool = try row.next()
        items = try row.next()
        bytes = try row.next()
        guard isNeeded else { return nil }
    }
}

/// Makes room for a deletion: drops a slice of kept contents, oldest first, and returns the number of rows. Older
/// versions of items are dropped before (``ItemAccess/makeRoom(_:)``).
struct DropContents: ItemWrite {
    typealias Row = Int64

    let room: NeededRoom

    /// A slice can take long as well.
    static let needsLease = true
    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH account AS (
            \(CallersAccount.sql(seat))
        ), room AS (
            SELECT x.excess_number, x.excess_bytes, x.excess_number AS wanted_number, x.excess_bytes AS wanted_bytes
            FROM (
                SELECT greatest(a.kept_count + a.version_count + \(\.room.items) - a.max_items, 0) AS excess_number,
                    greatest(a.kept_bytes + a.version_bytes + \(\.room.bytes) - a.max_bytes, 0) AS excess_bytes
                FROM account a
            ) x
        ), \(DeletedContent.dropping(DeletedContent.manyDrops, where: "true")), gone AS (
            DELETE FROM saltern.deleted_contents k USING dropped d
            WHERE k.account_id = \(.account) AND k.item_id = d.item_id
            RETURNING \(SealedSize.bytes(of: "k")) AS bytes
        ), total AS (
            SELECT count(*) AS number, coalesce(sum(g.bytes), 0)::bigint AS bytes FROM gone g
        ), counted AS (
            UPDATE saltern.accounts a
            SET kept_count = greatest(a.kept_count - t.number, 0), kept_bytes = greatest(a.kept_bytes - t.bytes, 0)
            FROM total t WHERE a.account_id = \(.account) AND t.number > 0
        )
        SELECT t.number FROM total t CROSS JOIN account
        """
    }
}

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
