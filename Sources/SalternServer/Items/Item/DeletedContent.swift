internal import Postgres

/// Kept contents of deleted items, stored for the plan's number of days while there is room.
///
/// Their budget equals the plan's items and bytes. A new deletion drops the contents that expire first. Older versions
/// of items (``ItemVersion``) use the rest of the budget.
enum DeletedContent {
    /// The number of kept contents that a deletion drops in its own statement. If more are necessary, ``DropContents``
    /// runs first, so that no statement takes long.
    static let fewDrops = 64
    /// The same for a batch.
    static let manyDrops = 1_000
    /// The number of rows that are dropped beyond the necessary, and the largest part of the budget for that. The next
    /// deletions then drop nothing and stay on the short path; a drop costs several times as much as a deletion without
    /// one.
    private static let reserve = 63
    private static let reservedPart = 16
    /// The expiry of kept content whose item exists again: until then a restore can be repeated. It is dropped before
    /// other kept contents. Computed in UTC, because a cluster accepts no expression that depends on the session.
    static func released<Root, Context>(from now: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "((\(now)::timestamptz AT TIME ZONE 'UTC' + interval '1 day') AT TIME ZONE 'UTC')"
    }

    /// Maximum of sealed bytes dropped at once. The last row may exceed it.
    static let dropBytes = 67_108_864

    /// Parts of a `WITH` that decide which deleted contents are kept and which are dropped for them:
    ///
    /// - `sized` has `is_kept` for each item: the latest ones for which an empty budget would have room.
    /// - `room` is one row: the kept contents after the change without drops, the excess, and the amount to drop if
    ///   anything is dropped.
    /// - `dropped` names the contents to drop.
    /// - `ready` is true if that is sufficient. It is not while older versions of items (``ItemVersion``) take room,
    ///   because those are dropped first.
    ///
    /// The part `account` has ``CallersAccount/columns``. `leaving` has `item_id`, `bytes` and `position`, with the
    /// latest item last.
    ///
    /// - Parameter limit: The maximum number of drops.
    static func makingRoom(dropping limit: Int) -> CallerSQL<Never> {
        """
        sized AS (
            SELECT l.item_id, l.bytes,
                a.deleted_days > 0 AND l.number <= a.max_items AND l.sum <= a.max_bytes AS is_kept
            FROM (
                SELECT l.item_id, l.bytes, row_number() OVER latest AS number, sum(l.bytes) OVER latest AS sum
                FROM leaving l WINDOW latest AS (ORDER BY l.position DESC ROWS UNBOUNDED PRECEDING)
            ) l CROSS JOIN account a
        ), room AS (
            SELECT x.number, x.bytes, x.excess_number, x.excess_bytes,
                CASE WHEN x.excess_number > 0
                    THEN x.excess_number + least(a.max_items / \(reservedPart), \(reserve)) ELSE 0 END AS wanted_number,
                CASE WHEN x.excess_bytes > 0 AND a.max_items >= \(reservedPart)
                    THEN x.excess_bytes + a.max_bytes / \(reservedPart) ELSE x.excess_bytes END AS wanted_bytes
            FROM account a CROSS JOIN LATERAL (
                SELECT n.number, n.bytes,
                    CASE WHEN n.leaves THEN greatest(n.number + a.version_count - a.max_items, 0) ELSE 0 END AS excess_number,
                    CASE WHEN n.leaves THEN greatest(n.bytes + a.version_bytes - a.max_bytes, 0) ELSE 0 END AS excess_bytes
                FROM (
                    SELECT count(s.item_id) > 0 AS leaves,
                        a.kept_count + count(*) FILTER (WHERE s.is_kept) - count(k.bytes) AS number,
                        (a.kept_bytes + coalesce(sum(s.bytes) FILTER (WHERE s.is_kept), 0)
                            - coalesce(sum(k.bytes), 0))::bigint AS bytes
                    FROM sized s LEFT JOIN LATERAL (
                        SELECT \(SealedSize.bytes(of: "k")) AS bytes FROM saltern.deleted_contents k
                        WHERE k.account_id = \(.account) AND k.item_id = s.item_id OFFSET 0
                    ) k ON true
                ) n
            ) x
        ), \(dropping(limit, where: "k.item_id <> ALL (ARRAY(SELECT l.item_id FROM leaving l))")), ready AS (
            SELECT d.number, d.bytes,
                (a.version_count = 0 OR (r.excess_number = 0 AND r.excess_bytes = 0))
                    AND ((d.number >= r.excess_number AND d.bytes >= r.excess_bytes)
                        OR (d.number = o.number AND o.number < \(limit))) AS is_ready
            FROM room r CROSS JOIN account a CROSS JOIN (
                SELECT count(*) AS number, coalesce(sum(d.bytes), 0)::bigint AS bytes FROM dropped d
            ) d CROSS JOIN (SELECT count(*) AS number FROM oldest) o
        )
        """
    }

    /// The parts `oldest`, at most `limit` rows in the order of expiry, and `dropped`, as many of them as `room`
    /// requires, up to ``dropBytes``.
    static func dropping(_ limit: Int, where condition: SQLFragment) -> CallerSQL<Never> {
        """
        oldest AS (
            SELECT k.item_id, k.bytes, row_number() OVER in_order AS place,
                sum(k.bytes) OVER in_order - k.bytes AS before
            FROM (
                SELECT k.item_id, k.expires_at, \(SealedSize.bytes(of: "k")) AS bytes
                FROM saltern.deleted_contents k
                WHERE k.account_id = \(.account) AND k.expires_at > '-infinity' AND \(condition)
                    AND (SELECT r.excess_number > 0 OR r.excess_bytes > 0 FROM room r)
                ORDER BY k.expires_at, k.item_id LIMIT \(limit)
            ) k
            WINDOW in_order AS (ORDER BY k.expires_at, k.item_id ROWS UNBOUNDED PRECEDING)
        ), dropped AS (
            SELECT o.item_id, o.bytes FROM oldest o CROSS JOIN room r
            WHERE (o.place <= r.wanted_number OR o.before < r.wanted_bytes) AND o.before < \(dropBytes)
        )
        """
    }

    /// A part of a `WITH` that removes the contents found by ``makingRoom(dropping:)``, and earlier kept contents of
    /// items whose content is not kept now.
    ///
    /// - Parameter source: A part with a row if the items are deleted.
    static func forgetting(when source: SQLFragment) -> CallerSQL<Never> {
        """
        forgotten AS (
            DELETE FROM saltern.deleted_contents k
            USING (
                SELECT s.item_id FROM sized s WHERE NOT s.is_kept
                UNION ALL
                SELECT d.item_id FROM dropped d
            ) g
            WHERE k.account_id = \(.account) AND k.item_id = g.item_id AND EXISTS (SELECT FROM \(source))
        )
        """
    }
}

/// Makes kept contents expire soon if their items exist again, to free their room for deletions. It follows the
/// statement that creates the items, and changes no others.
struct ReleaseContents: ItemStep {
    let owner: OwnerID
    let ids: [ItemID]
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.deleted_contents k SET expires_at = \(DeletedContent.released(from: "\(\.now)"))
        WHERE k.account_id = \(\.owner) AND k.item_id = ANY (\(\.ids)::uuid[])
            AND k.expires_at > \(DeletedContent.released(from: "\(\.now)"))
            AND EXISTS (
                SELECT FROM saltern.items i
                WHERE i.account_id = \(\.owner) AND i.item_id = k.item_id AND NOT i.deleted)
        """
}
