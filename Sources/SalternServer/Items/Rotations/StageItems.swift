internal import HTTPCore
internal import Postgres

/// `PUT /v1/rotations/{id}/items`: stages resealed items. Staging an item again replaces its staged content.
struct StageItems: AccountEndpoint {
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        let items = try await JSONBody.readLarge(request) { members in
            try await members.array("items", count: 1...Rotation.batchLimit, pace: request.pace) { json, _ in
                try await StagedItem(json: json, formats: formats, pace: request.pace)
            }
        }
        try Self.refuseDuplicates(items)
        let batch = StageBatch(id: id, items: items)
        let store = StoreStaged(batch: batch, accountID: authorization.accountID)
        var rows = try await authorization.write(batch, followedBy: store)
        if rows.first?.verdict.isFull == true, try await authorization.write(RemoveStrays(id: id)).first ?? 0 > 0 {
            rows = try await authorization.write(batch, followedBy: store)
        }
        guard let row = rows.first else { throw Problem.notFound }
        switch row.verdict {
        case .staged: break
        case .committed: throw RotationProblem.committed
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(limit: row.verdict.rawValue, allowed: row.allowed, used: row.used)
        }
        return .json(capacity: 96 + row.outdated.count * 40) { writer in
            writer.object { writer in
                writer.member("staged", row.items)
                writer.member("bytes", row.bytes)
                writer.array("outdated") { writer in
                    for item in row.outdated { writer.string(item.description) }
                }
            }
        }
    }

    private static func refuseDuplicates(_ items: [StagedItem]) throws(RotationProblem) {
        var seen: Set<ItemID> = []
        seen.reserveCapacity(items.count)
        for (index, item) in items.enumerated() where !seen.insert(item.id).inserted {
            throw .duplicateIdentifier(index: index)
        }
    }
}

/// A resealed item.
struct StagedItem: Sendable {
    let id: ItemID
    /// The revision of the item that was resealed.
    let baseRevision: Int64
    /// The new content. The collection stays.
    let content: ItemContent

    /// The number of sealed bytes.
    var byteCount: Int { content.body.bytes.count + (content.title?.bytes.count ?? 0) }

    /// Reads `{id, ifRevision, format, body, title?, iterations?}`.
    init(json: JSONValue, formats: [SealedFormat], pace: Pace) async throws {
        self = try await JSONMembers.read(json, pace: pace) {
            try await StagedItem(&$0, formats: formats, pace: pace)
        }
    }

    private init(_ members: inout JSONMembers, formats: [SealedFormat], pace: Pace) async throws {
        id = try members.required("id") { json in
            guard let id = ItemID(pathParameter: try json.string()) else { throw BatchProblem.invalidIdentifier }
            return id
        }
        baseRevision = try members.required("ifRevision") { Int64(try $0.integer(in: 1...Int.max)) }
        content = try await ItemContent(&members, formats: formats, hasCollection: false, pace: pace)
    }
}

/// Processes the staged items of a rotation in slices, each small enough for one statement well within its time limit.
enum StagedItems {
    private static let rowLimit = 5_000
    /// Maximum of sealed bytes. A single item may have more.
    private static let byteLimit = 33_554_432

    /// The part `bound` of a `WITH`: the last id of the first slice of a rotation's staged items. It has no row if
    /// nothing is staged.
    ///
    /// A slice is a range of keys, so that statements need no join. Without statistics the planner assumes one row for
    /// an account, and would nest loops.
    static func bound<Root, Context>(
        of rotation: SQLTemplate<Root, Context>, _ account: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        bound AS (
            SELECT b.item_id FROM (
                SELECT f.item_id, f.position, sum(f.bytes) OVER (ORDER BY f.position) AS bytes
                FROM (
                    SELECT s.item_id, row_number() OVER (ORDER BY s.item_id) AS position,
                        \(SealedSize.bytes(of: "s")) AS bytes
                    FROM saltern.rotation_items s
                    WHERE s.account_id = \(account) AND s.rotation_id = \(rotation)
                    ORDER BY s.item_id LIMIT \(rowLimit)
                ) f
            ) b
            WHERE b.position = 1 OR b.bytes <= \(byteLimit)
            ORDER BY b.position DESC LIMIT 1
        )
        """
    }

    /// Removes all staged items of a rotation in slices.
    static func remove(
        of rotation: RotationID, _ account: AccountID,
        execute: (RemoveStaged) async throws -> [Int64]
    ) async throws {
        while try await execute(RemoveStaged(accountID: account, rotationID: rotation)).first ?? 0 > 0 {}
    }
}

/// Removes a slice of a rotation's staged items and returns their number. The account's row must be locked.
struct RemoveStaged: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let rotationID: RotationID

    static let sql: SQL<Self> = """
        WITH \(StagedItems.bound(of: "\(\.rotationID)", "\(\.accountID)")), gone AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND s.item_id <= (SELECT b.item_id
                FROM bound b)
            RETURNING s.item_id
        )
        SELECT count(*) FROM gone
        """
}

/// Decides a batch of staged items as the first of two statements: checks the plan and updates the rotation's counters.
/// Returns no row if the account has no such rotation. ``StoreStaged`` writes the items.
///
/// Only live items are staged. An account above a lowered plan can still be rotated: with its present number of items
/// and bytes, and each item in its present size.
struct StageBatch: AccountWrite {
    let id: RotationID
    /// The items, each with a different id.
    let items: [StagedItem]
    /// Stored in the account's row as a token for the statement that follows.
    let writer = Int64.random(in: .min ... .max)

    struct Row: Sendable {
        let verdict: Verdict
        /// The exceeded limit and its usage.
        let allowed: Int64
        let used: Int64
        /// The number of staged items and their sealed bytes.
        let items: Int64
        let bytes: Int64
        /// The items of the batch whose revision differs from the resealed one.
        let outdated: [ItemID]
    }

    enum Verdict: String, Sendable, PostgresValue {
        case staged
        case committed
        case itemQuota = "items"
        case itemByteQuota = "itemBytes"
        case byteQuota = "bytes"

        /// True if fewer staged items would make room.
        var isFull: Bool { self == .itemQuota || self == .byteQuota }
    }

    fileprivate var ids: [ItemID] { items.map(\.id) }
    fileprivate var baseRevisions: [Int64] { items.map(\.baseRevision) }
    private var byteCounts: [Int64] { items.map { Int64($0.byteCount) } }

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH account AS (
            \(CallersAccount.sql(.session))
        ), rotation AS (
            SELECT r.account_id, r.rotation_id, r.committed_at, r.item_count, r.item_bytes, a.max_item_bytes,
                greatest(a.max_items, a.item_count) AS max_items, greatest(a.max_bytes, a.item_bytes) AS max_bytes
            FROM account a JOIN saltern.rotations r ON r.account_id = a.account_id
            WHERE r.account_id = \(.account) AND r.rotation_id = \(\.id) AND r.expires_at > \(.now)
        ), item AS (
            SELECT * FROM unnest(\(\.ids)::uuid[], \(\.baseRevisions)::bigint[], \(\.byteCounts)::bigint[])
                WITH ORDINALITY AS n(item_id, base_revision, new_bytes, position)
        ), decided AS (
            SELECT n.*, s.item_id IS NULL AS is_new,
                \(SealedSize.bytes(of: "s")) AS staged_bytes,
                \(SealedSize.bytes(of: "i")) AS live_bytes,
                i.deleted IS NOT DISTINCT FROM false AS is_live,
                i.deleted IS DISTINCT FROM false OR i.revision <> n.base_revision AS is_outdated
            FROM item n CROSS JOIN rotation r LEFT JOIN LATERAL (
                SELECT t.* FROM saltern.rotation_items t
                WHERE t.account_id = \(.account) AND t.rotation_id = \(\.id) AND t.item_id = n.item_id OFFSET 0
            ) s ON true LEFT JOIN LATERAL (
                SELECT l.* FROM saltern.items l WHERE l.account_id = \(.account) AND l.item_id = n.item_id OFFSET 0
            ) i ON true
        ), total AS (
            SELECT count(*) FILTER (WHERE d.is_new) AS more_items,
                coalesce(sum(d.new_bytes - d.staged_bytes), 0)::bigint AS more_bytes,
                coalesce(max(d.new_bytes) FILTER (WHERE d.new_bytes > d.live_bytes), 0) AS largest
            FROM decided d WHERE d.is_live
        ), verdict AS (
            SELECT r.*, t.more_items, t.more_bytes, t.largest,
                CASE
                    WHEN r.committed_at IS NOT NULL THEN 'committed'
                    WHEN t.largest > r.max_item_bytes THEN 'itemBytes'
                    WHEN t.more_items > 0 AND r.item_count + t.more_items > r.max_items THEN 'items'
                    WHEN t.more_bytes > 0 AND r.item_bytes + t.more_bytes > r.max_bytes THEN 'bytes'
                    ELSE 'staged'
                END AS verdict
            FROM rotation r CROSS JOIN total t
        ), counted AS (
            UPDATE saltern.rotations r
            SET item_count = r.item_count + v.more_items, item_bytes = r.item_bytes + v.more_bytes
            FROM verdict v
            WHERE r.account_id = \(.account) AND r.account_id = v.account_id AND r.rotation_id = v.rotation_id
                AND v.verdict = 'staged'
            RETURNING r.account_id, r.rotation_id, r.item_count, r.item_bytes
        ), told AS (
            UPDATE saltern.accounts a SET writer = \(\.writer) FROM counted c WHERE a.account_id = \(.account)
        )
        SELECT v.verdict,
            CASE v.verdict WHEN 'items' THEN v.max_items WHEN 'itemBytes' THEN v.max_item_bytes ELSE v.max_bytes END,
            CASE v.verdict WHEN 'items' THEN v.item_count WHEN 'itemBytes' THEN v.largest ELSE v.item_bytes END,
            coalesce(c.item_count, v.item_count), coalesce(c.item_bytes, v.item_bytes),
            ARRAY(SELECT d.item_id FROM decided d WHERE d.is_outdated ORDER BY d.position)
        FROM verdict v LEFT JOIN counted c ON c.account_id = v.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            verdict: try row.next(), allowed: try row.next(), used: try row.next(), items: try row.next(),
            bytes: try row.next(), outdated: try row.next([UUID].self).map { ItemID($0) })
    }
}

/// Writes the items if ``StageBatch`` has counted them.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct StoreStaged: Statement {
    let batch: StageBatch
    let accountID: AccountID

    private var formats: [String] { batch.items.map(\.content.format.rawValue) }
    private var iterations: [Int32?] { batch.items.map(\.content.iterations) }
    private var titles: [[UInt8]?] { batch.items.map { $0.content.title?.bytes } }
    private var bodies: [[UInt8]] { batch.items.map(\.content.body.bytes) }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.rotation_items s USING (
            SELECT a.account_id, o.item_id, o.base_revision, o.format, o.iterations, o.title, o.body
            FROM saltern.accounts a CROSS JOIN unnest(\(\.batch.ids)::uuid[], \(\.batch.baseRevisions)::bigint[],
                \(\.formats)::text[], \(\.iterations)::integer[], \(\.titles)::bytea[], \(\.bodies)::bytea[])
                AS o(item_id, base_revision, format, iterations, title, body)
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.batch.writer) AND EXISTS (
                SELECT FROM saltern.items i
                WHERE i.account_id = \(\.accountID) AND i.item_id = o.item_id AND NOT i.deleted OFFSET 0)
        ) n ON s.account_id = n.account_id AND s.rotation_id = \(\.batch.id) AND s.item_id = n.item_id
        WHEN MATCHED THEN UPDATE
            SET base_revision = n.base_revision, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body
        WHEN NOT MATCHED THEN INSERT
            (account_id, rotation_id, item_id, base_revision, format, iterations, title, body)
            VALUES (n.account_id, \(\.batch.id), n.item_id, n.base_revision, n.format, n.iterations, n.title, n.body)
        """
}

/// Removes staged items whose items were deleted meanwhile, to free their room.
struct RemoveStrays: AccountWrite {
    /// The number of removed items.
    typealias Row = Int64

    let id: RotationID

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(.account) AND s.rotation_id = \(\.id) AND \(Caller.hasLiveSession)
                AND NOT EXISTS (
                    SELECT FROM saltern.items i
                    WHERE i.account_id = \(.account) AND i.item_id = s.item_id AND NOT i.deleted)
            RETURNING \(SealedSize.bytes(of: "s")) AS bytes
        ), total AS (
            SELECT count(*) AS items, coalesce(sum(g.bytes), 0)::bigint AS bytes FROM gone g
        ), counted AS (
            UPDATE saltern.rotations r SET item_count = r.item_count - t.items, item_bytes = r.item_bytes - t.bytes
            FROM total t WHERE r.account_id = \(.account) AND r.rotation_id = \(\.id) AND t.items > 0
        )
        SELECT t.items FROM total t
        """
}
