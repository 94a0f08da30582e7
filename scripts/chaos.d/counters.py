"""What the rows of the database have to agree on, whatever has happened."""

from traffic.database import Database

# Each returns the rows that contradict.
CONTRADICTIONS = {
    "an account's counters are not its items": """
        SELECT a.account_id FROM saltern.accounts a
        LEFT JOIN LATERAL (
            SELECT count(*) AS items,
                coalesce(sum(octet_length(i.body) + coalesce(octet_length(i.title), 0)), 0) AS bytes,
                coalesce(max(i.revision), 0) AS revision
            FROM saltern.items i WHERE i.account_id = a.account_id AND NOT i.deleted) i ON true
        WHERE a.item_count <> i.items OR a.item_bytes <> i.bytes OR a.revision < i.revision""",
    "an account's counters are not what it keeps of deleted items": """
        SELECT a.account_id FROM saltern.accounts a
        LEFT JOIN LATERAL (
            SELECT count(*) AS contents,
                coalesce(sum(octet_length(d.body) + coalesce(octet_length(d.title), 0)), 0) AS bytes
            FROM saltern.deleted_contents d WHERE d.account_id = a.account_id) d ON true
        LEFT JOIN LATERAL (
            SELECT count(*) AS tombstones FROM saltern.items i WHERE i.account_id = a.account_id AND i.deleted) i ON true
        WHERE a.kept_count <> d.contents OR a.kept_bytes <> d.bytes OR a.tombstone_count <> i.tombstones""",
    "an account's counters are not the older versions that it keeps": """
        SELECT a.account_id FROM saltern.accounts a
        LEFT JOIN LATERAL (
            SELECT count(*) AS versions,
                coalesce(sum(octet_length(v.body) + coalesce(octet_length(v.title), 0)), 0) AS bytes
            FROM saltern.replaced_contents v WHERE v.account_id = a.account_id) v ON true
        WHERE a.version_count <> v.versions OR a.version_bytes <> v.bytes""",
    "two changes have one revision": """
        SELECT account_id FROM saltern.items GROUP BY account_id, revision HAVING count(*) > 1""",
    "a log-in and its account disagree": """
        SELECT coalesce(a.account_id, l.account_id)
        FROM saltern.accounts a FULL JOIN saltern.logins l ON l.account_id = a.account_id
        WHERE l.userid IS DISTINCT FROM a.userid OR l.credential_revision IS DISTINCT FROM a.credential_revision""",
    "a share has one row of two": """
        SELECT coalesce(s.share_id, o.share_id)
        FROM saltern.shares s FULL JOIN saltern.account_shares o ON o.share_id = s.share_id
        WHERE s.share_id IS NULL OR o.share_id IS NULL""",
    "something belongs to nobody": """
        SELECT account_id FROM (
            SELECT account_id FROM saltern.items UNION ALL SELECT account_id FROM saltern.sessions
            UNION ALL SELECT account_id FROM saltern.deleted_contents
            UNION ALL SELECT account_id FROM saltern.replaced_contents
            UNION ALL SELECT account_id FROM saltern.account_shares
            UNION ALL SELECT account_id FROM saltern.security_events) owned
        WHERE NOT EXISTS (SELECT FROM saltern.accounts a WHERE a.account_id = owned.account_id)""",
    "an older version is the present one or a later one": """
        SELECT v.account_id FROM saltern.replaced_contents v
        JOIN saltern.items i ON i.account_id = v.account_id AND i.item_id = v.item_id
        WHERE v.revision >= i.revision""",
    "what a deleted item held is kept of one that is not deleted": """
        SELECT d.account_id FROM saltern.deleted_contents d
        LEFT JOIN saltern.items i ON i.account_id = d.account_id AND i.item_id = d.item_id
        WHERE i.deleted IS DISTINCT FROM true""",
}


def contradictions(database: Database) -> list[str]:
    found = []
    for what, sql in CONTRADICTIONS.items():
        if count := database.number(f"SELECT count(*) FROM ({sql}) contradiction"):
            found.append(f"{what}: {count}")
    return found
