"""Fills the database of a running server, and measures commands, the purge, and what writes leave behind.

Called by scripts/growth, which starts the server.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from traffic.database import Database
from traffic.people import Person, fresh_id, item, register_many
from traffic.wire import Connection, Target, request

FOLDER = Path(__file__).parent
LIMIT = 10.0
LEAST_PURGED = 3_000
# The minimum number of requests for a percentile, and the permitted factor of their durations.
LEAST_REQUESTS = 300
SLOWER = {"p50": 4.0, "p99": 10.0}
# In the folder of the server.
BACKUP = "growth.backup"
BAR = re.compile(r"\[[#.]+\] \d+ of \d+|\r\d+ [a-z ]+ *(?=\r)")

COMMANDS = [
    ["stats"],
    ["doctor"],
    ["migrate", "status"],
    ["migrate", "verify"],
    ["account", "list"],
    ["account", "list", "--userid-prefix", "person99"],
    ["account", "list", "--locked"],
    ["account", "show", "person7@example.org"],
    ["account", "events", "person7@example.org"],
    ["account", "lock", "person7@example.org"],
    ["account", "unlock", "person7@example.org"],
    ["account", "end-sessions", "person7@example.org"],
    ["account", "set-plan", "person7@example.org", "pro"],
    ["account", "delete", "--yes", "person7@example.org"],
    ["account", "delete", "--never-used", "--older-than", "30d", "--dry-run"],
    ["account", "delete", "--never-used", "--older-than", "30d", "--yes"],
    ["plan", "list"],
    ["plan", "set", "pro", "--items", "200000"],
    ["invite", "create", "--count", "100"],
    ["invite", "list", "--all"],
    ["audit", "list"],
    ["audit", "verify"],
    ["master-key", "reseal"],
    ["restored"],
    ["backup", BACKUP],
]

# In a database that is made of that backup.
COMMANDS_OF_COPY = [
    ["restore", BACKUP],
    ["restored", "--end-sessions"],
]

WRITE = """
\\set n random(1, :accounts)
\\set i random(1, 2)
BEGIN;
UPDATE saltern.accounts SET revision = revision + 1 WHERE account_id = md5('account ' || :n)::uuid;
UPDATE saltern.sessions SET last_used_at = now() WHERE account_id = md5('account ' || :n)::uuid AND expires_at > now();
UPDATE saltern.items SET revision = (SELECT a.revision FROM saltern.accounts a
    WHERE a.account_id = md5('account ' || :n)::uuid), updated_at = now(), body = body
WHERE account_id = md5('account ' || :n)::uuid AND item_id = md5('person' || :n || '@example.org' || :i)::uuid;
COMMIT;
"""

TABLES = ["items", "sessions", "accounts"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Commands:
    """The command of the server that runs."""

    def __init__(self, home: str):
        script = f"set -a; source {home}/run.env; env -0"
        said = subprocess.run(["bash", "-c", script], check=True, capture_output=True).stdout
        pairs = [entry.split("=", 1) for entry in said.decode().split("\0") if "=" in entry]
        self.environment = {name: value for name, value in pairs if not name.startswith("SALTERN_TEST_")}
        self.home = home

    def of_copy(self) -> dict[str, str]:
        """The settings for another database beside the server's, which `restore` makes."""
        names = ["SALTERN_DATABASE_URL", "SALTERN_OWNER_DATABASE_URL"]
        copied = {name: f"{self.environment[name].rpartition('/')[0]}/copy" for name in names}
        superuser = re.sub("saltern_app@", "postgres@", self.environment["SALTERN_DATABASE_URL"]).rpartition("/")[0]
        return self.environment | copied | {"SALTERN_SUPERUSER_DATABASE_URL": f"{superuser}/postgres"}

    def run(self, words: list[str], environment: dict[str, str] | None = None) -> tuple[float, str, bool]:
        """How long it takes, what it prints, and whether somebody at a terminal sees how far it is."""
        begun = time.monotonic()
        terminal, inner = os.openpty()
        with subprocess.Popen(
            ["saltern", *words],
            env=environment or self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=inner,
            text=True,
        ) as process:
            os.close(inner)
            shown: list[bytes] = []
            reader = threading.Thread(target=read_all, args=(terminal, shown))
            reader.start()
            said = process.communicate()[0]
            reader.join()
        told = b"".join(shown).decode(errors="replace")
        if process.returncode != 0:
            raise SystemExit(f"growth: saltern {' '.join(words)}: {told or said}")
        return time.monotonic() - begun, said, BAR.search(told) is not None


def read_all(terminal: int, shown: list[bytes]) -> None:
    with os.fdopen(terminal, "rb", buffering=0) as file:
        try:
            while chunk := file.read(65_536):
                shown.append(chunk)
        except OSError:
            # Linux reports the end of a terminal in this way.
            pass


def fill(database: Database, url: str, accounts: int) -> None:
    begun = time.monotonic()
    subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--set", f"accounts={accounts}", "--file", FOLDER / "fill.sql", url],
        check=True,
    )
    size = database.number("SELECT pg_database_size(current_database())")
    say(f"{accounts:,} accounts, {size / 1e9:.1f} GB, in {time.monotonic() - begun:.0f} s")


class Neighbour:
    """Reads and writes now and then, and notes how long that takes."""

    def __init__(self, target: Target):
        self.target = target
        self.times: list[float] = []
        self.failures = 0

    async def prepare(self) -> None:
        self.people = await register_many(self.target, "neighbour", 4, 21)
        self.connection = await Connection.open(self.target)
        self.items = [fresh_id() for _ in self.people]
        for person, item_id in zip(self.people, self.items, strict=True):
            await self.put(person, item_id, {"If-None-Match": "*"})

    async def put(self, person: Person, item_id: str, condition: dict[str, str]) -> None:
        wanted = request("PUT", f"/v1/items/{item_id}", item(1024), person.token, condition)
        self.failures += (await self.connection.exchange(wanted)).status not in (200, 201)

    async def go_on(self, until: "asyncio.Event") -> None:
        number = 0
        while not until.is_set():
            person, item_id = self.people[number % 4], self.items[number % 4]
            number += 1
            begun = time.monotonic()
            if number % 3 == 0:
                await self.put(person, item_id, {"If-Match": "*"})
            else:
                reply = await self.connection.exchange(request("GET", f"/v1/items/{item_id}", None, person.token))
                self.failures += reply.status != 200
            self.times.append(time.monotonic() - begun)
            await asyncio.sleep(0.01)

    def taken(self) -> dict[str, float]:
        ordered = sorted(self.times)
        self.times = []
        return {
            "requests": len(ordered),
            "p50": 1e3 * ordered[len(ordered) // 2],
            "p99": 1e3 * ordered[len(ordered) * 99 // 100],
            "worst": 1e3 * ordered[-1],
        }


async def purge(target: Target, commands: Commands) -> dict[str, Any]:
    neighbour = Neighbour(target)
    await neighbour.prepare()

    async def meanwhile(work: Any) -> tuple[Any, dict[str, float]]:
        done = asyncio.Event()
        going = asyncio.create_task(neighbour.go_on(done))
        result = await work
        done.set()
        await going
        return result, neighbour.taken()

    _, before = await meanwhile(asyncio.sleep(10))
    (seconds, said, _), during = await meanwhile(asyncio.to_thread(commands.run, ["purge", "--json"]))
    counts = json.loads(said)
    skipped = counts.pop("skippedAccounts")
    rows = sum(counts.values())
    return {
        "rows": counts,
        "seconds": seconds,
        "rate": rows / seconds,
        "skipped": skipped,
        "before": before,
        "during": during,
        "failures": neighbour.failures,
    }


def measure_writes(database: Database, options: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    outcome = {}
    kept = {
        table: database.run(f"SELECT array_to_string(reloptions, ',') FROM pg_class WHERE oid = 'saltern.{table}'::regclass")
        for table in TABLES
    }
    for name in ["default", "migrated"]:
        for table in TABLES:
            settings = [setting for setting in kept[table].strip().split(",") if setting.startswith("autovacuum")]
            words = ", ".join(setting.split("=")[0] for setting in settings) if name == "default" else ", ".join(settings)
            database.run(f"ALTER TABLE saltern.{table} {'RESET' if name == 'default' else 'SET'} ({words})")
            vacuum = f"VACUUM FULL ANALYZE saltern.{table}"
            subprocess.run(["psql", "--no-psqlrc", "--quiet", "--command", vacuum, options.owner_database], check=True)
        before = {table: state(database, table) for table in TABLES}
        write(options)
        outcome[name] = {table: difference(before[table], state(database, table)) for table in TABLES}
        for table, figures in outcome[name].items():
            say(f"{name:9} {table:9} " + ", ".join(f"{key} {value:,.1f}" for key, value in figures.items()))
    return outcome


def write(options: argparse.Namespace) -> None:
    subprocess.run(
        [
            *["pgbench", "--no-vacuum", "--file", "-", "--define", f"accounts={options.accounts}", "--client", "8"],
            *["--protocol", "prepared", "--rate", str(options.rate), "--time", str(options.writes), options.owner_database],
        ],
        input=WRITE,
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def state(database: Database, table: str) -> list[int]:
    """Bytes, dead rows, and how often it was vacuumed."""
    return [
        int(figure)
        for figure in database.rows(
            f"""SELECT pg_total_relation_size(relid), n_dead_tup, autovacuum_count
            FROM pg_stat_user_tables WHERE relid = 'saltern.{table}'::regclass"""
        )[0]
    ]


def difference(before: list[int], after: list[int]) -> dict[str, float]:
    return {
        "MB before": before[0] / 1e6,
        "MB after": after[0] / 1e6,
        "thousand dead": after[1] / 1e3,
        "vacuums": after[2] - before[2],
    }


def time_commands(commands: Commands, complaints: list[str]) -> dict[str, float]:
    taken = {}
    of_copy = commands.of_copy()
    chosen = [(words, commands.environment) for words in COMMANDS] + [(words, of_copy) for words in COMMANDS_OF_COPY]
    for words, environment in chosen:
        if words[-1] == "--end-sessions":
            leave_sessions(Database(of_copy["SALTERN_OWNER_DATABASE_URL"]))
        seconds, _, has_bar = commands.run(words, environment)
        taken[" ".join(words)] = seconds
        say(f"{seconds:7.2f} s  saltern {' '.join(words)}{'  (shows its progress)' if has_bar else ''}")
        if seconds > LIMIT and not has_bar:
            complaints.append(f"saltern {' '.join(words)} took {seconds:.0f} s")
    return taken


def leave_sessions(database: Database) -> None:
    """Those of 5,000 accounts: each account's are ended in a transaction of its own."""
    database.run("""
        DELETE FROM saltern.sessions WHERE account_id > (
            SELECT account_id FROM saltern.accounts ORDER BY account_id OFFSET 5000 LIMIT 1)""")


def judge_purge(told: dict[str, Any], complaints: list[str]) -> None:
    say(f"purge: {told['rate']:,.0f} rows a second, {told['seconds']:.0f} s, {told['rows']}, {told['skipped']} skipped")
    for name in ["before", "during"]:
        say(f"neighbours {name}: " + ", ".join(f"{key} {value:,.1f}" for key, value in told[name].items()))
    if told["rate"] < LEAST_PURGED:
        complaints.append(f"the purge removed {told['rate']:,.0f} rows a second")
    for name, most in SLOWER.items():
        ratio = told["during"][name] / told["before"][name]
        if told["during"]["requests"] < LEAST_REQUESTS:
            say(f"neighbours: too few requests to judge by: take more accounts ({name} is {ratio:.1f} times as long)")
        elif ratio > most:
            complaints.append(f"{name} of neighbours was {ratio:.1f} times as long during the purge")
    if told["failures"]:
        complaints.append(f"{told['failures']} requests failed during the purge")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--home", required=True)
    parser.add_argument("--owner-database", required=True)
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--only", default="commands,purge,writes")
    parser.add_argument("--writes", type=int, default=0)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    database = Database(options.owner_database)
    commands = Commands(options.home)
    fill(database, options.owner_database, options.accounts)
    complaints = []

    chosen = options.only.split(",")
    figures: dict[str, Any] = {"accounts": options.accounts}
    if "commands" in chosen:
        figures["commands"] = time_commands(commands, complaints)
    if "purge" in chosen:
        port = int(re.sub(r".*:", "", options.url))
        target = Target(port, os.path.join(options.home, "tls/certificate.pem"))
        figures["purge"] = asyncio.run(purge(target, commands))
        judge_purge(figures["purge"], complaints)
    if "writes" in chosen and options.writes:
        figures["writes"] = measure_writes(database, options)
    if options.json:
        print(json.dumps(figures, indent=2))
    for complaint in complaints:
        say(f"growth: {complaint}")
    sys.exit(1 if complaints else 0)


main()
