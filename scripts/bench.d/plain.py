"""The statements of a plain server, for pgbench: one table each of users, sessions and items, found by their own keys, and
nothing that Saltern has besides: no quota, revision, tombstone, change feed, second factor or account that is looked at.
What Saltern's own statements cost is held against these.
"""

from statements import BODY, REFRESH

SCHEMA = """
    CREATE SCHEMA plain;
    CREATE TABLE plain.users (userid text PRIMARY KEY, user_id uuid NOT NULL, verifier bytea NOT NULL);
    CREATE TABLE plain.sessions (
        token_hash bytea PRIMARY KEY, user_id uuid NOT NULL, created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL);
    CREATE TABLE plain.items (
        item_id uuid PRIMARY KEY, user_id uuid NOT NULL, format text NOT NULL, body bytea NOT NULL,
        updated_at timestamptz NOT NULL);
    INSERT INTO plain.users SELECT userid, account_id, sha256(userid::bytea) FROM bench.accounts;
    INSERT INTO plain.sessions SELECT token_hash, account_id, now(), now() + interval '365 days' FROM bench.accounts;
    INSERT INTO plain.items SELECT i.item_id, i.account_id, i.format, i.body, i.updated_at FROM saltern.items i;
    GRANT USAGE ON SCHEMA plain TO saltern_server;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA plain TO saltern_server;
    ANALYZE plain.users, plain.sessions, plain.items;
"""

# The hundred items that load.lua's batches write for an account.
HUNDRED = """
    CREATE FUNCTION plain.hundred(item_id uuid) RETURNS uuid[] LANGUAGE sql AS $$
        SELECT array_agg((left(item_id::text, 24) || lpad(to_hex(k), 12, '0'))::uuid ORDER BY k)
        FROM generate_series(1, 100) k
    $$;
"""

SETTLE = """
    DELETE FROM plain.sessions s WHERE NOT EXISTS (SELECT FROM bench.accounts a WHERE a.token_hash = s.token_hash);
    VACUUM ANALYZE plain.sessions, plain.items;
"""

STATEMENTS = {
    "login": [
        "SELECT user_id, verifier FROM plain.users WHERE userid = :userid::text",
        "INSERT INTO plain.sessions VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),"
        " :account_id::uuid, now(), now() + interval '365 days')",
    ],
    "read": [
        "SELECT i.item_id, i.format, i.body, i.updated_at FROM plain.sessions s"
        " JOIN plain.items i ON i.user_id = s.user_id"
        " WHERE s.token_hash = :token_hash::bytea AND s.expires_at > now() AND i.item_id = :item_id::uuid"
    ],
    "write": [
        "INSERT INTO plain.items AS i (item_id, user_id, format, body, updated_at)"
        f" SELECT :item_id::uuid, s.user_id, 'aes-256-gcm', {BODY}, now() FROM plain.sessions s"
        " WHERE s.token_hash = :token_hash::bytea AND s.expires_at > now()"
        " ON CONFLICT (item_id) DO UPDATE SET format = excluded.format, body = excluded.body,"
        " updated_at = excluded.updated_at WHERE i.user_id = excluded.user_id"
    ],
    # 192 bytes each, as load.lua sends them.
    "batch": [
        "INSERT INTO plain.items AS i (item_id, user_id, format, body, updated_at)"
        " SELECT u.id, :account_id::uuid, 'aes-256-gcm',"
        " convert_to(repeat(lpad((:n::bigint + u.k)::text, 16, '0'), 12), 'UTF8'), now()"
        " FROM unnest(:ids::uuid[]) WITH ORDINALITY u(id, k)"
        " ON CONFLICT (item_id) DO UPDATE SET format = excluded.format, body = excluded.body,"
        " updated_at = excluded.updated_at WHERE i.user_id = excluded.user_id"
    ],
}

# A number that grows by one with each request of the row.
EFFECTS = {
    "login": "SELECT count(*) FROM plain.sessions",
    "write": "SELECT n_tup_upd FROM pg_stat_user_tables WHERE schemaname = 'plain' AND relname = 'items'",
}


def script(row):
    """The pgbench script of a row."""
    return _refresh(row) + "".join(statement + ";\n" for statement in STATEMENTS[row])


def _refresh(row):
    if row != "batch":
        return REFRESH
    return REFRESH.replace("share_id FROM", "share_id, plain.hundred(item_id) AS ids FROM")


def proof(row):
    """A script that fails when a row's reading statement finds nothing."""
    if row == "batch":
        return _refresh(row) + "SELECT 1 / (cardinality(:ids::uuid[]) / 100);\n"
    found = STATEMENTS["read" if row == "write" else row][0]
    return REFRESH + f"SELECT 1 / count(*) FROM ({found}) AS found;\n"
