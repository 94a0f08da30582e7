"""The server's database, asked with psql, and locks that are held in it from outside."""

import subprocess
from types import TracebackType

OPTIONS = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]


class Database:
    def __init__(self, url: str):
        self.words = ["psql", *OPTIONS, url]

    def run(self, sql: str) -> str:
        """Runs some SQL. What it says is what psql prints, without the last line feed."""
        finished = subprocess.run(self.words, input=sql, capture_output=True, text=True, timeout=300, check=False)
        if finished.returncode != 0:
            raise RuntimeError(f"psql: {finished.stderr.strip()}")
        return finished.stdout.rstrip("\n")

    def number(self, sql: str) -> int:
        return int(self.run(sql))

    def rows(self, sql: str) -> list[list[str]]:
        return [line.split("|") for line in self.run(sql).splitlines()]


class HeldLock:
    """Somebody else's transaction that has done something and does not end: `with HeldLock(database, "SELECT …")`."""

    def __init__(self, database: Database, sql: str):
        self.words = database.words
        self.sql = sql

    def __enter__(self) -> "HeldLock":
        self.psql = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.psql.stdin and self.psql.stdout
        self.psql.stdin.write(f"BEGIN;\n{self.sql};\n\\echo held\n")
        self.psql.stdin.flush()
        for line in self.psql.stdout:
            if line == "held\n":
                return self
        raise RuntimeError("psql did not get the lock")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.psql.stdin and self.psql.stdout
        self.psql.stdin.close()
        self.psql.stdout.close()
        self.psql.wait(30)


def lock_account(account_id: str) -> str:
    return f"SELECT 1 FROM saltern.accounts WHERE account_id = '{account_id}' FOR UPDATE"
