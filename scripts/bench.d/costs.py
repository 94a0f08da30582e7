"""What PostgreSQL executes for each hot statement, in thousands of instructions: the figures in the statements' comments.

Called by scripts/bench --only statements, first as `prepare` while there is a server to make an account, then as `count`
when it has ended: with the same database under callgrind, a client that sends values in binary as the server does, plans
that are kept, and tables of a row or two. What a SELECT of nothing with the same parameters takes is taken off, and so the
machine may be busy. The kernel's part, the commit and the flush are not in it.
"""

import argparse
import asyncio
import glob
import json
import os
import re
import shutil
import signal
import subprocess

import asyncpg
import plain
from accounts import make_accounts
from database import Database
from statements import ENDPOINTS, PARAMETERS, Statements

# What one request executes in order, in a transaction that is rolled back.
SCENES = [
    *ENDPOINTS.values(),
    ["FindChanges"],
    ["CreateItem", "StoreNewItem"],
    ["DeleteOneItem", "ArchiveContent", "WriteTombstone"],
    ["AuthenticateForWrite"],
    ["TouchSession"],
]
PLAIN = {"login": ["plain log-in: SELECT", "plain log-in: INSERT"], "read": ["plain read"], "write": ["plain write"]}

# A plan is kept after five executions.
WARMING = 6
COUNTED = 5
# PostgreSQL enters it once for each execution of what is prepared.
EACH_EXECUTION = "GetCachedPlan"


def prepare(options):
    """Makes an account through the API, and writes down what is known of it."""
    certificate = os.path.join(options.home, "tls", "certificate.pem")
    accounts = make_accounts(int(options.url.rpartition(":")[2]), certificate, 1)
    Database("psql", options.owner_database).prepare(accounts)
    account = accounts[0]
    with open(options.account, "w", encoding="utf-8") as file:
        json.dump(
            {
                ":userid": f"'{account.userid}'", ":account_id": f"'{account.account_id}'",
                ":item_id": f"'{account.item_id}'", ":token_hash": f"'\\x{account.token_hash}'",
                ":share_id": f"'\\x{account.share_key}'", ":n": "1234567890123456",
            },
            file,
        )


class Plan:
    """A statement that is prepared, its like that does nothing, and the values for both."""

    def __init__(self, name, sql, expressions):
        self.name, self.sql, self.expressions = name, sql, expressions
        self.values, self.does, self.does_nothing = [], None, None

    async def prepare(self, connection):
        types = []
        for expression in self.expressions:
            row = await connection.fetchrow(f"SELECT pg_typeof(v)::text, v FROM (SELECT {expression}) AS x (v)")
            types.append(row[0])
            self.values.append(row[1])
        typed = re.sub(r"\$(\d+)", lambda match: f"${match.group(1)}::{types[int(match.group(1)) - 1]}", self.sql)
        parameters = " AND ".join(f"${number}::{kind} IS NULL" for number, kind in enumerate(types, 1))
        self.does = await connection.prepare(typed)
        self.does_nothing = await connection.prepare(f"SELECT WHERE {parameters or 'false'}")


def plans(options):
    """The statements by scene, with an expression for each parameter."""
    with open(options.account, encoding="utf-8") as file:
        known = json.load(file)

    def literal(expression):
        return re.sub(r"(?<!:):[a-z_]+", lambda match: known[match.group(0)], expression)

    statements = Statements(options.executable)
    for names in SCENES:
        yield [Plan(name, statements.sql[name], [literal(e) for e in PARAMETERS[name]]) for name in names]
    for row, names in PLAIN.items():
        yield [Plan(name, literal(sql), []) for name, sql in zip(names, plain.STATEMENTS[row], strict=True)]


async def execute(options, scenes):
    """Executes every scene. Returns what each counted execution was, in order, and who carried them out."""
    connection = await asyncpg.connect(
        host=options.sockets, user="saltern_app", database="saltern", timeout=120, command_timeout=300,
        statement_cache_size=0)
    await connection.execute("SET enable_bitmapscan = off; SET enable_seqscan = off; SET jit = off")
    for scene in scenes:
        for plan in scene:
            await plan.prepare(connection)
    backend = await connection.fetchval("SELECT pg_backend_pid()")
    order = []
    for scene in scenes:
        for turn in range(WARMING + COUNTED):
            await connection.execute("BEGIN")
            for plan in scene:
                await plan.does_nothing.fetch(*plan.values)
                await plan.does.fetch(*plan.values)
                order += [(plan.name, "nothing", turn), (plan.name, "statement", turn)]
            # Ends what is counted of the last one.
            await scene[0].does_nothing.fetch(*scene[0].values)
            order.append((None, None, turn))
            await connection.execute("ROLLBACK")
    await connection.close()
    return order, backend


def read_totals(folder, backend):
    """The instructions between each two executions of a backend, in order."""
    totals = {}
    # The last part has no number in its name.
    for path in [f"{folder}/{backend}", *glob.glob(f"{folder}/{backend}.*")]:
        with open(path, encoding="utf-8") as file:
            number = re.search(r"^part: (\d+)", text := file.read(), re.MULTILINE)
        totals[int(number.group(1))] = int(re.search(r"^totals: (\d+)", text, re.MULTILINE).group(1))
    return [totals[number] for number in sorted(totals)]


def count(options):
    """Thousands of instructions by statement."""
    folder = options.account + ".counted"
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    owner = os.stat(options.data)
    os.chown(folder, owner.st_uid, owner.st_gid)
    options.sockets = folder
    words = ["valgrind", "--tool=callgrind", f"--dump-before={EACH_EXECUTION}", f"--callgrind-out-file={folder}/%p"]
    words += [options.postgres, "-D", options.data, "-k", folder, "-c", "listen_addresses=", "-c", "autovacuum=off"]
    if os.getuid() != owner.st_uid:
        words = ["setpriv", "--reuid", str(owner.st_uid), "--regid", str(owner.st_gid), "--clear-groups", *words]
    scenes = list(plans(options))
    with open(f"{folder}/log", "wb") as log, subprocess.Popen(words, stdout=log, stderr=log, cwd="/") as server:
        try:
            order, backend = asyncio.run(patiently(options, scenes))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)
    totals = read_totals(folder, backend)
    samples = {}
    for (name, kind, turn), total in zip(order, totals[-len(order):], strict=True):
        if name and turn >= WARMING:
            samples.setdefault(name, {}).setdefault(kind, []).append(total)
    return {name: round((min(s["statement"]) - min(s["nothing"])) / 1_000, 1) for name, s in samples.items()}


async def patiently(options, scenes):
    """Under callgrind PostgreSQL takes its time to start."""
    for _ in range(120):
        try:
            return await execute(options, scenes)
        except (FileNotFoundError, ConnectionError, asyncpg.CannotConnectNowError):
            await asyncio.sleep(1)
    raise SystemExit("PostgreSQL did not start under callgrind")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=["prepare", "count"])
    parser.add_argument("--json", action="store_true")
    for name in ["url", "home", "owner-database", "executable", "account", "data", "postgres"]:
        parser.add_argument(f"--{name}")
    options, _ = parser.parse_known_args()
    if options.stage == "prepare":
        prepare(options)
        return
    costs = count(options)
    if options.json:
        print(json.dumps(costs))
        return
    for name, cost in costs.items():
        print(f"{name:24}{cost:>8.1f} thousand instructions")


if __name__ == "__main__":
    main()
