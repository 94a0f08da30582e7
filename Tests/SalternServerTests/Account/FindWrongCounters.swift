import Postgres

/// Accounts whose counters are not what their rows add up to, and shares that only one of their two rows knows.
struct FindWrongCounters: Statement {
    typealias Row = String
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT format('account %s counts %s items and %s bytes, and has %s and %s', a.account_id, a.item_count,
            a.item_bytes, n.items, n.bytes)
        FROM saltern.accounts a CROSS JOIN LATERAL (
            SELECT count(*) AS items,
                coalesce(sum(octet_length(i.body) + coalesce(octet_length(i.title), 0)), 0) AS bytes
            FROM saltern.items i WHERE i.account_id = a.account_id AND NOT i.deleted
        ) n
        WHERE a.item_count <> n.items OR a.item_bytes <> n.bytes
        UNION ALL
        SELECT format('rotation %s counts %s items, and has %s', r.rotation_id, r.item_count, n.items)
        FROM saltern.rotations r CROSS JOIN LATERAL (
            SELECT count(*) AS items FROM saltern.rotation_items s
            WHERE s.account_id = r.account_id AND s.rotation_id = r.rotation_id
        ) n
        WHERE r.committed_at IS NULL AND r.expires_at > '2026-01-01 00:30:00+00' AND r.item_count <> n.items
        UNION ALL
        SELECT format('share %s is on %s lists', s.share_id, n.lists)
        FROM saltern.shares s CROSS JOIN LATERAL (
            SELECT count(*) AS lists FROM saltern.account_shares h
            WHERE h.share_id = s.share_id
                AND h.account_id = coalesce(s.owner_account, '00000000-0000-0000-0000-000000000000')
        ) n
        WHERE n.lists <> 1
        UNION ALL
        SELECT format('a list has %s, which is no share', h.share_id) FROM saltern.account_shares h
        WHERE NOT EXISTS (SELECT FROM saltern.shares s WHERE s.share_id = h.share_id)
        UNION ALL
        SELECT format('%s of nobody: %s', t.name, t.account_id) FROM (
            SELECT 'session' AS name, account_id FROM saltern.sessions
            UNION ALL SELECT 'item', account_id FROM saltern.items
            UNION ALL SELECT 'content', account_id FROM saltern.deleted_contents
            UNION ALL SELECT 'event', account_id FROM saltern.security_events
            UNION ALL SELECT 'login', account_id FROM saltern.logins
        ) t
        WHERE NOT EXISTS (SELECT FROM saltern.accounts a WHERE a.account_id = t.account_id)
        UNION ALL
        SELECT format('account %s has no login', a.account_id) FROM saltern.accounts a
        WHERE NOT EXISTS (
            SELECT FROM saltern.logins l WHERE l.account_id = a.account_id AND l.userid = a.userid
                AND l.credential_revision = a.credential_revision)
        """
}
