internal import Postgres

// The short paths of a write: what is nearly always the case, in as little as PostgreSQL can do. Each decides everything
// that ``AuthenticateForWrite`` and the full statement decide, but only for its own case. When the case is another one, it
// changes nothing and has no row, and the full statement is asked, behind a lock of its own.
//
// Most of what a write costs is the machinery of each statement, each part of a `WITH` and each join, not the rows. The
// full statements carry every column through for the answers that are not "done"; these have one part besides what they
// return.

/// A change of an account's items that locks and decides at once (``ShortPath/isUnmoved``).
protocol ShortPath: AccountWrite where Row: ShortPathRow {}

/// What a short path has done.
protocol ShortPathRow {
    /// Whether the use of the session is to be recorded.
    var isTouchDue: Bool { get }
}

extension ShortPath {
    static var joinsGroups: Bool { true }

    /// The condition that the account `a` is what it was when the statement began.
    ///
    /// An UPDATE that has to wait for the row's lock goes on with the row that it then finds, but with all others as they
    /// were before: another's session would still be live, another's item have its earlier revision. So whoever changes
    /// what is decided here also updates the account's row (``SessionEnd/removing(_:of:at:)`` for ends of sessions), which
    /// makes another version of it, of another transaction: this is false then. (A comparison of `ctid` might become the
    /// way to find the row, and is not looked at again after a wait then.)
    static var isUnmoved: CallerSQL<Never> {
        "a.xmin = (SELECT seen.xmin FROM saltern.accounts seen WHERE seen.account_id = \(.account))"
    }

    /// The caller's account `a` may be changed.
    static var callersAccount: CallerSQL<Never> {
        "a.account_id = \(.account) AND a.locked_at IS NULL AND \(isUnmoved)"
    }

    /// The plan `p` of the account `a` fulfils `condition`.
    ///
    /// Looked at by itself: as one more table of a join it costs more, and the planner may sort two rows to merge them.
    static func plan<Root>(permits condition: CallerSQL<Root>) -> CallerSQL<Root> {
        "EXISTS (SELECT FROM saltern.plans p WHERE p.plan = a.plan AND \(condition) OFFSET 0)"
    }
}

/// Replaces an item that exists by another content, within the plan: ``WriteItem`` for anything but
/// ``Precondition/absent``, unless what is short replaces what is long, which takes as long to remove, or the content is due
/// to be kept as a version (``ReplaceKeeping``). Replacing by something as large or smaller is always within the plan.
///
/// Costs 394 thousand instructions (a plain upsert 66), of which more than a third make it ready: each operator of each
/// condition costs about two thousand, executed or not. So what the item is changed by is reckoned once, in a part that
/// `OFFSET 0` keeps the planner from dissolving. It is fewer than for ``AuthenticateForWrite`` and the same behind it, and
/// fewer than for ``WriteItem``: no row is made of what is only shown when the change is refused, and an UPDATE by key
/// needs no ON CONFLICT. A function in PL/pgSQL would take more: it makes each of its statements ready as well.
struct ReplaceItem: ShortPath {
    typealias Row = WrittenItem

    let write: WriteItem

    var sealedByteCount: Int { write.sealedByteCount }

    /// The revision that the item must have; any when null.
    var revision: Int64? { write.precondition == .present ? nil : write.precondition.parameter }

    /// By how many bytes it must grow at least (less than none when it may shrink): what is short replaces nothing long.
    var leastGrowth: Int64 {
        write.byteCount > Authorization.sharedByteLimit
            ? .min : write.byteCount - Int64(Authorization.sharedByteLimit)
    }

    static let sql: CallerSQL<Self> = """
        WITH counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision")), item_bytes = a.item_bytes + d.growth
            FROM (
                SELECT \(\.write.byteCount) - \(SealedSize.bytes(of: "i")) AS growth, \(Caller.isTouchDue) AS is_touch_due,
                    \(ItemVersion.isDue(since: "\(.keptSince)")) AS is_due
                FROM saltern.items i, saltern.sessions live
                WHERE \(Caller.isLiveSession)
                    AND i.account_id = \(.account) AND i.item_id = \(\.write.id) AND NOT i.deleted
                    AND i.revision = coalesce(\(\.revision), i.revision)
                    AND (i.body <> \(\.write.body.bytes) OR i.title IS DISTINCT FROM \(\.write.title?.bytes)
                        OR i.format <> \(\.write.format.rawValue) OR i.collection <> \(\.write.collection?.name)
                        OR i.iterations IS DISTINCT FROM \(\.write.iterations))
                OFFSET 0
            ) d
            WHERE \(callersAccount) AND d.growth >= \(\.leastGrowth) AND \(plan(permits: roomForGrowth))
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

    private static let roomForGrowth: CallerSQL<Self> = """
        (d.growth <= 0 OR (\(\.write.byteCount) <= p.max_item_bytes AND a.item_bytes + d.growth <= p.max_bytes))
            AND (NOT d.is_due OR p.deleted_days = 0)
        """
}

/// Counts a new item of whose identifier nothing is left, not even a tombstone, within the plan: ``WriteItem`` for
/// ``Precondition/absent``. ``StoreNewItem`` follows in the same transaction.
///
/// Costs 229 thousand instructions, and ``StoreNewItem`` 133. Two statements, because a cluster plans an INSERT from a part
/// of a WITH for every shard.
struct CreateItem: ShortPath {
    typealias Row = WrittenItem

    let write: WriteItem
    /// Noted in the account's row, so that what follows knows whether this has counted.
    let writer = Int64.random(in: .min ... .max)

    static let sql: CallerSQL<Self> = """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count + 1,
            item_bytes = a.item_bytes + \(\.write.byteCount), writer = \(\.writer)
        FROM saltern.sessions live
        WHERE \(callersAccount) AND \(Caller.isLiveSession)
            AND \(\.write.precondition.parameter) = 0 AND \(plan(permits: roomForOneMore))
            AND NOT EXISTS (
                SELECT FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id = \(\.write.id))
        RETURNING a.revision, \(\.write.newCollection.name), \(.now)::timestamptz, \(.now)::timestamptz, \(Caller.isTouchDue)
        """

    private static let roomForOneMore: CallerSQL<Self> = """
        \(\.write.byteCount) <= p.max_item_bytes AND a.item_count < p.max_items
            AND a.item_bytes + \(\.write.byteCount) <= p.max_bytes
        """
}

/// Stores the item that ``CreateItem`` has counted, and nothing when it has not.
///
/// Nobody else creates the item meanwhile, for the account is locked. `MERGE`, because an INSERT that selects from another
/// table is planned for every shard of a cluster.
struct StoreNewItem: Statement {
    let creation: CreateItem
    let accountID: AccountID
    let now: Timestamp

    var bytesInGroup: Int? { creation.write.sealedByteCount + 256 }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.items i USING (
            SELECT a.account_id, a.revision FROM saltern.accounts a
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.creation.writer)
        ) n ON i.account_id = n.account_id AND i.item_id = \(\.creation.write.id)
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, revision, deleted, collection, format, iterations, title, body, created_at,
            updated_at)
            VALUES (n.account_id, \(\.creation.write.id), n.revision, false, \(\.creation.write.newCollection.name),
                \(\.creation.write.format.rawValue), \(\.creation.write.iterations), \(\.creation.write.title?.bytes),
                \(\.creation.write.body.bytes), \(\.now), \(\.now))
        """
}

/// An item that was written on a short path: what the client does not know yet.
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

/// Counts a deletion of an item that exists, where there is room for what it held and for its tombstone: ``DecideDeletion``
/// unless something has to go for it, it is long, or what an earlier item of this identifier held is kept.
/// ``ArchiveContent`` and ``WriteTombstone`` follow in the same transaction.
///
/// Costs 340 thousand instructions, ``ArchiveContent`` 293 and ``WriteTombstone`` 175: half of what it is with ``DecideDeletion``, whose
/// parts that make room are executed also when there is room. That deleted items can be restored is a third of it.
struct DeleteOneItem: ShortPath {
    let decision: DecideDeletion

    struct Row: DecodableRow, ShortPathRow {
        /// For how many days the content is kept.
        let days: Int32
        let isTouchDue: Bool

        init(row: inout RowReader) throws(PostgresError) {
            days = try row.next()
            isTouchDue = try row.next()
        }
    }

    static let sql: CallerSQL<Self> = """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count - 1,
            item_bytes = a.item_bytes - \(bytes), tombstone_count = a.tombstone_count + 1,
            kept_count = a.kept_count + 1, kept_bytes = a.kept_bytes + \(bytes),
            writer = \(\.decision.writer.first)::bigint + 1 + p.deleted_days
        FROM saltern.items i, saltern.plans p, saltern.sessions live
        WHERE \(callersAccount) AND \(Caller.isLiveSession) AND p.plan = a.plan
            AND i.account_id = \(.account) AND i.item_id = \(\.decision.id) AND NOT i.deleted
            AND (\(\.decision.precondition.parameter) = -1 OR i.revision = \(\.decision.precondition.parameter))
            AND \(bytes) <= \(Authorization.sharedByteLimit)
            AND p.deleted_days > 0 AND a.kept_count + a.version_count < p.max_items
            AND a.kept_bytes + a.version_bytes + \(bytes) <= p.max_bytes
            AND a.tombstone_count < p.max_items + \(TombstoneLimit.allowance)
            AND NOT EXISTS (
                SELECT FROM saltern.deleted_contents k
                WHERE k.account_id = \(.account) AND k.item_id = \(\.decision.id))
        RETURNING p.deleted_days, \(Caller.isTouchDue)
        """

    private static let bytes = SealedSize.bytes(of: "i")
}
