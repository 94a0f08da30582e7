internal import Postgres

/// What deleted items held. It is kept as long as the plan says and as long as there is room: it has a budget of its own,
/// as many items and bytes as the plan allows, and what expires first makes room for what is deleted now. Older versions
/// of items (``ItemVersion``) use what is left of it.
enum DeletedContent {
    /// How many kept contents a deletion drops to make room, beside what it does. When more have to go, ``DropContents``
    /// goes first, so that no statement takes long.
    static let fewDrops = 64
    /// The same of a batch.
    static let manyDrops = 1_000
    /// How many more than necessary go at once, and which part of the budget at most: the next deletions drop nothing and
    /// stay on the short path. A deletion that drops one content costs several times as much as one that drops none.
    private static let reserve = 63
    private static let reservedPart = 16
    /// When what was kept of an item that is here again goes: until then a restore can be repeated. It makes room before what
    /// is kept of deleted items. (In UTC, because a cluster takes no sum that depends on the session.)
    static func released<Root, Context>(from now: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "((\(now)::timestamptz AT TIME ZONE 'UTC' + interval '1 day') AT TIME ZONE 'UTC')"
    }

    /// Sealed bytes that go at once; the last row may have more.
    static let dropBytes = 67_108_864

    /// Parts of a `WITH` that decide what is kept of the items that are deleted, and what goes for it.
    ///
    /// `sized` says of each item whether it `is_kept`: the latest, as many as there would be room for if nothing else
    /// were kept. `room` has one row: what is kept afterwards without drops, how much of that is too much, and how much
    /// has to go; and how much goes when something has to. `dropped` names what goes. `ready` says whether that is enough,
    /// which it is not while older versions of items (``ItemVersion``) are in the way: they go first.
    ///
    /// The part `account` has ``CallersAccount/columns``; `leaving` has `item_id`, `bytes` and `position`, by which the
    /// latest is the last.
    ///
    /// - Parameter limit: How many may go.
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

    /// The parts `oldest`, what expires first, at most `limit` rows; and of it `dropped`, as much as `room` wants, and no
    /// more than ``dropBytes``.
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

    /// A part of a `WITH` that removes what ``makingRoom(dropping:)`` has found, and what an earlier deletion left of items
    /// of which nothing is kept.
    ///
    /// - Parameter source: A part that has one row when the items are deleted.
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

/// Lets what is kept of items that are here again expire soon, so that it makes room for what is deleted. Sent after what has
/// put them there; of others it changes nothing.
struct ReleaseContents: Statement {
    let accountID: AccountID
    let ids: [ItemID]
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.deleted_contents k SET expires_at = \(DeletedContent.released(from: "\(\.now)"))
        WHERE k.account_id = \(\.accountID) AND k.item_id = ANY (\(\.ids)::uuid[])
            AND k.expires_at > \(DeletedContent.released(from: "\(\.now)"))
            AND EXISTS (
                SELECT FROM saltern.items i
                WHERE i.account_id = \(\.accountID) AND i.item_id = k.item_id AND NOT i.deleted)
        """
}
