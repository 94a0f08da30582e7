internal import HTTPCore
internal import Postgres

/// `POST /v1/items/{id}/restore`: restores the kept content of a deleted item.
struct RestoreItem: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: false)
        let (owner, now) = (items.owner, items.now)
        var changes: [ItemChange]
        repeat {
            let restoration = RestoreItemRow(id: id, precondition: preconditions.current)
            (changes, _) = try await items.write(
                restoration, followedBy: StoreRestored(restoration: restoration, owner: owner, now: now),
                ReleaseContents(owner: owner, ids: [id], now: now))
        } while changes.first?.allowsAnother(of: &preconditions) ?? false
        let restored = try ItemChange.accepted(changes, items).reply
        return restored.response(fields: ["ETag": restored.item.entityTag])
    }
}

/// Decides a restore as the first of two statements: takes the account's next revision and updates the counters.
/// ``StoreRestored`` writes the item.
///
/// An item equal to its kept content is `unchanged` for any precondition, because the request then repeats one whose
/// reply was lost. For that purpose kept content stays for a time (``ReleaseContents``).
struct RestoreItemRow: ItemWrite {
    typealias Row = ItemChange

    let id: ItemID
    let precondition: Precondition
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    /// The moved content can be long.
    static let needsLease = true
    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH account AS (
            \(CallersAccount.sql(seat))
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
                tombstone_count = greatest(a.tombstone_count - d.fewer_tombstones, 0), writer = \(\.writer)
            FROM decision d
            WHERE a.account_id = \(.account) AND a.account_id = d.account_id AND d.outcome = 'restored'
            RETURNING a.account_id, a.revision
        )
        SELECT d.outcome,
            CASE d.outcome WHEN 'items' THEN d.max_items WHEN 'itemBytes' THEN d.max_item_bytes ELSE d.max_bytes END,
            CASE d.outcome WHEN 'items' THEN d.item_count WHEN 'itemBytes' THEN d.new_bytes ELSE d.item_bytes END,
            i.account_id IS NOT NULL, \(ItemInParts.columns)
        FROM decision d LEFT JOIN (
            SELECT k.account_id, k.item_id, n.revision, k.collection, k.created_at, \(.now)::timestamptz AS updated_at,
                k.format, k.iterations, k.title, k.body
            FROM counted n JOIN kept k ON k.account_id = n.account_id
            UNION ALL
            SELECT c.account_id, c.item_id, c.revision, c.collection, c.created_at, c.updated_at, c.format,
                c.iterations, c.title, c.body
            FROM current c WHERE NOT EXISTS (SELECT FROM counted)
        ) i ON i.account_id = d.account_id
        """
    }
}

/// Writes the item if ``RestoreItemRow`` has counted it.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct StoreRestored: ItemStep {
    let restoration: RestoreItemRow
    let owner: OwnerID
    let now: Timestamp

    static let sql: SQL<Self> = """
        MERGE INTO saltern.items i USING (
            SELECT a.account_id, a.revision, k.collection, k.format, k.iterations, k.title, k.body, k.created_at
            FROM saltern.accounts a JOIN saltern.deleted_contents k
                ON k.account_id = a.account_id AND k.account_id = \(\.owner) AND k.item_id = \(\.restoration.id)
            WHERE a.account_id = \(\.owner) AND a.writer = \(\.restoration.writer)
        ) n ON i.account_id = n.account_id AND i.item_id = \(\.restoration.id)
        WHEN MATCHED THEN UPDATE
            SET revision = n.revision, deleted = false, collection = n.collection, format = n.format,
                iterations = n.iterations, title = n.title, body = n.body, created_at = n.created_at,
                updated_at = \(\.now)
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, revision, deleted, collection, format, iterations, title, body, created_at,
            updated_at)
            VALUES (n.account_id, \(\.restoration.id), n.revision, false, n.collection, n.format, n.iterations,
                n.title, n.body, n.created_at, \(\.now))
        """
}
