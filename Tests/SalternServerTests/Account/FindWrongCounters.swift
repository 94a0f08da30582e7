import Postgres

/// Accounts whose counters are not what their rows add up to, and shares that only one of their two rows knows.
struct FindWrongCounters: Statement {
    typealias Row = String
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        WITH people AS MATERIALIZED (
            SELECT account_id, userid, credential_revision, item_count, item_bytes, tombstone_count, kept_count,
                kept_bytes, version_count, version_bytes
            FROM saltern.accounts
        ), stored AS MATERIALIZED (
            SELECT account_id, count(*) FILTER (WHERE NOT deleted) AS items, count(*) FILTER (WHERE deleted) AS tombstones,
                sum(coalesce(octet_length(body), 0) + coalesce(octet_length(title), 0)) AS bytes
            FROM saltern.items GROUP BY account_id
        ), kept AS MATERIALIZED (
            SELECT account_id, count(*) AS contents,
                sum(octet_length(body) + coalesce(octet_length(title), 0)) AS bytes
            FROM saltern.deleted_contents GROUP BY account_id
        ), versions AS MATERIALIZED (
            SELECT account_id, count(*) AS contents,
                sum(octet_length(body) + coalesce(octet_length(title), 0)) AS bytes
            FROM saltern.replaced_contents GROUP BY account_id
        ), counted AS (
            SELECT a.account_id,
                ARRAY[a.item_count, a.item_bytes, a.tombstone_count, a.kept_count, a.kept_bytes,
                    a.version_count, a.version_bytes] AS counters,
                ARRAY[coalesce(n.items, 0), coalesce(n.bytes, 0), coalesce(n.tombstones, 0), coalesce(k.contents, 0),
                    coalesce(k.bytes, 0), coalesce(v.contents, 0), coalesce(v.bytes, 0)]::bigint[] AS rows
            FROM people a LEFT JOIN stored n ON n.account_id = a.account_id
            LEFT JOIN kept k ON k.account_id = a.account_id
            LEFT JOIN versions v ON v.account_id = a.account_id
        ), staged AS MATERIALIZED (
            SELECT account_id, rotation_id, count(*) AS items FROM saltern.rotation_items
            GROUP BY account_id, rotation_id
        ), opened AS MATERIALIZED (
            SELECT account_id, rotation_id, item_count FROM saltern.rotations
            WHERE committed_at IS NULL AND expires_at > '2026-01-01 00:30:00+00'
        ), shared AS MATERIALIZED (
            SELECT share_id, coalesce(owner_account, '00000000-0000-0000-0000-000000000000') AS owner FROM saltern.shares
        ), listed AS MATERIALIZED (
            SELECT share_id, account_id FROM saltern.account_shares
        ), ways AS MATERIALIZED (
            SELECT account_id, userid, credential_revision FROM saltern.logins
        ), owned AS MATERIALIZED (
            SELECT 'session' AS name, account_id FROM saltern.sessions
            UNION ALL SELECT 'item', account_id FROM saltern.items
            UNION ALL SELECT 'content', account_id FROM saltern.deleted_contents
            UNION ALL SELECT 'version', account_id FROM saltern.replaced_contents
            UNION ALL SELECT 'event', account_id FROM saltern.security_events
            UNION ALL SELECT 'login', account_id FROM ways
        )
        SELECT format('account %s counts %s items, bytes, tombstones, kept contents, their bytes, versions, their bytes, and has %s',
            c.account_id, c.counters, c.rows)
        FROM counted c WHERE c.counters <> c.rows
        UNION ALL
        SELECT format('rotation %s counts %s items, and has %s', r.rotation_id, r.item_count, n.items)
        FROM opened r LEFT JOIN staged n ON n.account_id = r.account_id AND n.rotation_id = r.rotation_id
        WHERE r.item_count <> coalesce(n.items, 0)
        UNION ALL
        SELECT format('share %s is on %s lists', s.share_id, count(h.share_id))
        FROM shared s LEFT JOIN listed h ON h.share_id = s.share_id AND h.account_id = s.owner
        GROUP BY s.share_id HAVING count(h.share_id) <> 1
        UNION ALL
        SELECT format('a list has %s, which is no share', h.share_id) FROM listed h
        WHERE NOT EXISTS (SELECT FROM shared s WHERE s.share_id = h.share_id)
        UNION ALL
        SELECT format('%s of nobody: %s', t.name, t.account_id) FROM owned t
        WHERE NOT EXISTS (SELECT FROM people a WHERE a.account_id = t.account_id)
        UNION ALL
        SELECT format('account %s has no login', a.account_id) FROM people a
        WHERE NOT EXISTS (
            SELECT FROM ways l WHERE l.account_id = a.account_id AND l.userid = a.userid
                AND l.credential_revision = a.credential_revision)
        """
}
