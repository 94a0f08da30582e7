internal import Postgres

// The short paths of writes handle the most frequent cases with the least work for PostgreSQL. Each decides as
// ``AuthenticateForWrite`` and the full statement do, but only for its own case. In other cases it changes nothing and
// returns no row; the full statement then runs behind a lock of its own.
//
// Most of a write's cost is the machinery of each statement, each part of a `WITH` and each join, not the rows. Full
// statements compute all columns for rejections; these have one part besides the result.

/// A change of an account's items that locks and decides in one statement (``ShortPath/isUnmoved``).
protocol ShortPath: ItemWrite where Row: ShortPathRow {}

/// The result of a short path.
protocol ShortPathRow {
    /// True if the use of the session is due to be recorded.
    var isTouchDue: Bool { get }
}

extension ShortPath {
    static var joinsGroups: Bool { true }

    /// The condition that no other transaction has changed the account's row `a` since the statement began.
    ///
    /// An UPDATE that waits for the row's lock continues with the new row, but sees all other rows as before the wait.
    /// An ended session would still be live, and a changed item would have its earlier revision. All changes of these
    /// rows therefore also update the account's row, which gives it a version of another transaction; this condition is
    /// then false. An example is ``SessionEnd/removing(_:of:at:dropping:)`` for ends of sessions.
    ///
    /// `ctid` does not serve: the comparison could become the access path, which is not checked again after a wait.
    static var isUnmoved: CallerSQL<Never> {
        "a.xmin = (SELECT seen.xmin FROM saltern.accounts seen WHERE seen.account_id = \(.account))"
    }

    /// The condition that the caller may change the row `a` of the items' owner.
    static func callersAccount(_ seat: Seat) -> CallerSQL<Never> {
        "a.account_id = \(.account) AND \(seat.admits) AND \(isUnmoved)"
    }

    /// The condition that the plan `p` of the account `a` fulfils `condition`.
    ///
    /// A subquery, because another joined table costs more, and the planner may sort two rows to merge them.
    static func plan<Root>(permits condition: CallerSQL<Root>) -> CallerSQL<Root> {
        "EXISTS (SELECT FROM saltern.plans p WHERE p.plan = a.plan AND \(condition) OFFSET 0)"
    }
}

/// Replaces an existing item by different content, within the plan: ``WriteItem`` for all preconditions but
/// ``Precondition/absent``.
///
/// Two cases are excluded: long content replaced by short, because its removal takes long, and content with a version
/// due (``ReplaceKeeping``). A replacement of equal or smaller size is always within the plan.
///
/// Costs 394 thousand instructions (a plain upsert 66), more than a third of them for the executor's start. Each
/// operator of each condition costs about two thousand, executed or not. The item's change is therefore computed once,
/// in a part that `OFFSET 0` keeps separate. ``AuthenticateForWrite`` with the same statement, and ``WriteItem``, cost
/// more: here no row is built for rejections, and an UPDATE by key needs no ON CONFLICT. A function in PL/pgSQL would
/// cost more, because it starts each of its statements as well.
struct ReplaceItem: ShortPath {
    typealias Row = WrittenItem

    let write: WriteItem

    var sealedByteCount: Int { write.sealedByteCount }
    var sealedKey: SealedKey { write.sealedKey }

    /// The required revision. Nil for any.
    var revision: Int64? { write.precondition == .present ? nil : write.precondition.parameter }

    /// The minimum growth in bytes, negative if the item may shrink. It excludes the replacement of long content by
    /// short content.
    var leastGrowth: Int64 {
        write.byteCount > Authorization.sharedByteLimit
            ? .min : write.byteCount - Int64(Authorization.sharedByteLimit)
    }

    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision")), item_bytes = a.item_bytes + d.growth
            FROM (
                SELECT \(\.write.byteCount) - \(SealedSize.bytes(of: "i")) AS growth, \(seat.isTouchDue) AS is_touch_due,
                    \(ItemVersion.isDue(since: "\(.keptSince)")) AS is_due
                FROM saltern.items i, \(seat.table) live
                WHERE \(seat.isCallers)
                    AND i.account_id = \(.account) AND i.item_id = \(\.write.id) AND NOT i.deleted
                    AND i.revision = coalesce(\(\.revision), i.revision)
                    AND (i.body <> \(\.write.body.bytes) OR i.title IS DISTINCT FROM \(\.write.title?.bytes)
                        OR i.format <> \(\.write.format.rawValue) OR i.collection <> \(\.write.collection?.name)
                        OR i.iterations IS DISTINCT FROM \(\.write.iterations))
                OFFSET 0
            ) d
            WHERE \(callersAccount(seat)) AND d.growth >= \(\.leastGrowth) AND \(plan(permits: roomForGrowth))
            RETURNING a.revision, d.is_touch_due
        )
        UPDATE saltern.items i
        SET revision = n.revision, collection = coalesce(\(\.write.collection?.name), i.collection), format = \(\.write.format.rawValue),
            iterations = \(\.write.iterations), title = \(\.write.title?.bytes), body = \(\.write.body.bytes),
            updated_at = \(.now)
        FROM counted n
        WHERE i.account_id = \(.account) AND i.item_id = \(\.write.id)
        RETURNING i.revision, i.collection, i.created_at, i.updated_at, n.is_touch_due
        """
    }

    private static let roomForGrowth: CallerSQL<Self> = """
        (d.growth <= 0 OR (\(\.write.byteCount) <= p.max_item_bytes AND a.item_bytes + d.growth <= p.max_bytes))
            AND (NOT d.is_due OR p.deleted_days = 0)
        """
}

/// Counts a new item, within the plan, if neither item nor tombstone exists: ``WriteItem`` for ``Precondition/absent``.
/// ``StoreNewItem`` follows in the same transaction.
///
/// Costs 229 thousand instructions, and ``StoreNewItem`` 133. Two statements, because a cluster plans an INSERT from a
/// part of a WITH for every shard.
struct CreateItem: ShortPath {
    typealias Row = WrittenItem

    let write: WriteItem
    var sealedKey: SealedKey { write.sealedKey }
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count + 1,
            item_bytes = a.item_bytes + \(\.write.byteCount), writer = \(\.writer)
        FROM \(seat.table) live
        WHERE \(callersAccount(seat)) AND \(seat.isCallers)
            AND \(\.write.precondition.parameter) = 0 AND \(plan(permits: roomForOneMore))
            AND NOT EXISTS (
                SELECT FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id = \(\.write.id))
        RETURNING a.revision, \(\.write.newCollection.name), \(.now)::timestamptz, \(.now)::timestamptz, \(seat.isTouchDue)
        """
    }

    private static let roomForOneMore: CallerSQL<Self> = """
        \(\.write.byteCount) <= p.max_item_bytes AND a.item_count < p.max_items
            AND a.item_bytes + \(\.write.byteCount) <= p.max_bytes
        """
}

/// Stores the item if ``CreateItem`` has counted it.
///
/// The account's lock prevents concurrent creation. `MERGE`, because an INSERT that selects from another table is
/// planned for every shard of a cluster.
struct StoreNewItem: ItemStep {
    let creation: CreateItem
    let owner: OwnerID
    let now: Timestamp

    var bytesInGroup: Int? { creation.write.sealedByteCount + 256 }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.items i USING (
            SELECT a.account_id, a.revision FROM saltern.accounts a
            WHERE a.account_id = \(\.owner) AND a.writer = \(\.creation.writer)
        ) n ON i.account_id = n.account_id AND i.item_id = \(\.creation.write.id)
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, revision, deleted, collection, format, iterations, title, body, created_at,
            updated_at)
            VALUES (n.account_id, \(\.creation.write.id), n.revision, false, \(\.creation.write.newCollection.name),
                \(\.creation.write.format.rawValue), \(\.creation.write.iterations), \(\.creation.write.title?.bytes),
                \(\.creation.write.body.bytes), \(\.now), \(\.now))
        """
}

/// The columns of an item written on a short path that the client has not sent.
struct WrittenItem: DecodableRow, ShortPathRow {
    let revision: Int64
    let collection: String
    let createdAt: Timestamp
    let updatedAt: Timestamp
    let isTouchDue: Bool

    init(row: inout RowReader) throws(PostgresError) {
        revision = try row.next()
        collection = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
        isTouchDue = try row.next()
    }
}

/// Counts a deletion of an existing item if its content and tombstone have room. ``ArchiveContent`` and
/// ``WriteTombstone`` follow in the same transaction. ``DecideDeletion`` takes the other cases: something must be
/// dropped, the item is long, or content of an earlier item with this id is kept.
///
/// Costs 340 thousand instructions, ``ArchiveContent`` 293 and ``WriteTombstone`` 175: half as much as with
/// ``DecideDeletion``, whose parts for making room always run. Keeping deleted content is a third of the cost.
struct DeleteOneItem: ShortPath {
    let decision: DecideDeletion

    var discarded: [ItemID] { decision.discarded }

    struct Row: DecodableRow, ShortPathRow {
        /// The number of days for which the content is kept.
        let days: Int32
        let isTouchDue: Bool

        init(row: inout RowReader) throws(PostgresError) {
            days = try row.next()
            isTouchDue = try row.next()
        }
    }

    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count - 1,
            item_bytes = a.item_bytes - \(bytes), tombstone_count = a.tombstone_count + 1,
            kept_count = a.kept_count + 1, kept_bytes = a.kept_bytes + \(bytes),
            writer = \(\.decision.writer.first)::bigint + 1 + p.deleted_days
        FROM saltern.items i, saltern.plans p, \(seat.table) live
        WHERE \(callersAccount(seat)) AND \(seat.isCallers) AND p.plan = a.plan
            AND i.account_id = \(.account) AND i.item_id = \(\.decision.id) AND NOT i.deleted
            AND (\(\.decision.precondition.parameter) = -1 OR i.revision = \(\.decision.precondition.parameter))
            AND \(bytes) <= \(Authorization.sharedByteLimit)
            AND p.deleted_days > 0 AND a.kept_count + a.version_count < p.max_items
            AND a.kept_bytes + a.version_bytes + \(bytes) <= p.max_bytes
            AND a.tombstone_count < p.max_items + \(TombstoneLimit.allowance)
            AND NOT EXISTS (
                SELECT FROM saltern.deleted_contents k
                WHERE k.account_id = \(.account) AND k.item_id = \(\.decision.id))
        RETURNING p.deleted_days, \(seat.isTouchDue)
        """
    }

    private static let bytes = SealedSize.bytes(of: "i")
}

/// The statements of items.
extension StatementList {
    static var items: [any Statement.Type] {
        [
            Owned<FindItem>.self, Owned<FindItemPart>.self, Owned<FindItems>.self, Owned<FindItemHeaders>.self,
            Owned<FindSliceEnd>.self, Guarded<WriteItem>.self, Guarded<ReplaceItem>.self, Guarded<CreateItem>.self,
            StoreNewItem.self, Guarded<DecideDeletion>.self, Guarded<DeleteOneItem>.self, ArchiveContent.self,
            WriteTombstone.self, Guarded<RestoreItemRow>.self, StoreRestored.self, Guarded<DropContents>.self,
        ]
    }
}
