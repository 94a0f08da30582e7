"""The server's database, as its owner sees it: tables for pgbench, and proof that a load did what it claims."""

import subprocess

import plain


class Database:
    def __init__(self, psql, url):
        self.words = [psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", url]

    def run(self, sql):
        finished = subprocess.run(self.words, input=sql, capture_output=True, text=True, timeout=120, check=False)
        if finished.returncode != 0:
            raise SystemExit(f"psql: {finished.stderr}")
        return finished.stdout.strip()

    def prepare(self, accounts):
        """Lets pgbench find the accounts, and lets them have as many sessions as a load makes."""
        rows = ",".join(
            f"({number},'{a.userid}','{a.account_id}','\\x{a.token_hash}','{a.item_id}','\\x{a.share_key}')"
            for number, a in enumerate(accounts, 1)
        )
        self.run(
            f"""
            CREATE SCHEMA bench;
            CREATE TABLE bench.accounts (
                number integer PRIMARY KEY, userid text, account_id uuid, token_hash bytea, item_id uuid,
                share_id bytea);
            INSERT INTO bench.accounts VALUES {rows};
            GRANT USAGE ON SCHEMA bench TO saltern_server;
            GRANT SELECT ON bench.accounts TO saltern_server;
            UPDATE saltern.plans SET max_sessions = 1000000000;
            -- Their last version was kept a moment ago, also at the end of a long load.
            UPDATE saltern.items SET kept_at = 'infinity';
            ANALYZE bench.accounts, saltern.logins, saltern.accounts, saltern.sessions, saltern.items,
                saltern.shares;
            """
        )
        self.run(plain.SCHEMA + plain.HUNDRED)

    def settle(self):
        """Brings the tables back to the size at which every run begins."""
        self.run(
            """
            DELETE FROM saltern.sessions s
            WHERE NOT EXISTS (
                SELECT FROM bench.accounts a WHERE a.account_id = s.account_id AND a.token_hash = s.token_hash);
            VACUUM ANALYZE saltern.sessions, saltern.items, saltern.accounts, saltern.shares;
            """
        )
        self.run(plain.SETTLE)

    def limit_sessions(self, count):
        """How many sessions each account may have."""
        self.run(f"UPDATE saltern.plans SET max_sessions = {int(count)}")

    def fill_sessions(self, count, spread):
        """Gives the accounts `count` more sessions, and one to `spread` of them beyond that."""
        self.run(
            f"""
            INSERT INTO saltern.sessions (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
            SELECT a.account_id, sha256((a.account_id || ' ' || n)::bytea), gen_random_uuid(), now(), now(),
                now() + interval '1 day'
            FROM bench.accounts a, generate_series(1, {int(count)} + a.number % {int(spread)}) n;
            VACUUM ANALYZE saltern.sessions;
            """
        )

    def effects(self, row):
        """A number that grows by one with each request of the row; None when the row changes nothing."""
        if row == "login":
            return int(self.run("SELECT count(*) FROM saltern.sessions"))
        if row == "write":
            return int(self.run("SELECT sum(revision) FROM saltern.accounts"))
        if row == "share":
            return int(self.run("SELECT sum(views) FROM saltern.shares"))
        return None

    def plain_effects(self, row):
        """The same for the plain server's tables."""
        return int(self.run(plain.EFFECTS[row])) if row in plain.EFFECTS else None
