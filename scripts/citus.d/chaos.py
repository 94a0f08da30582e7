"""Breaks a cluster, and a server on it, while people write, and looks whether everything that was acknowledged is there.

Called by scripts/citus --all. The writers and what their rows have to agree on are those of scripts/chaos. The server is one
of its own, with the settings of the one that runs.
"""

import argparse
import os
import random
import shlex
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from counters import CONTRADICTIONS
from processes import Recipe, Supervised, wait_until
from writers import Writers

from traffic.database import Database
from traffic.wire import Target

# How long the service may take to be whole again, once what was broken is.
RECOVERY = 180.0
# Settings of the one that runs that would make it hand over its sockets.
NOT_OURS = {"SALTERN_LISTEN", "SALTERN_DATABASE_URL", "SALTERN_HANDOVER_SOCKET", "SALTERN_METRICS_LISTEN"}


@dataclass
class Node:
    database: Database
    data: str
    start_words: list[str]

    def kill(self, number: signal.Signals) -> None:
        """Ends its PostgreSQL, and starts it again when what it leaves behind has ended."""
        with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
            os.kill(int(file.readline()), number)
        wait_until(180, lambda: os.spawnvp(os.P_WAIT, self.start_words[0], self.start_words) == 0, "a node to start again")

    def end_sessions(self) -> None:
        self.database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'saltern_app'")


class Chaos:
    def __init__(self, options: argparse.Namespace):
        self.nodes = [
            Node(Database(url), os.path.join(options.directory, str(number)), shlex.split(words))
            for number, (url, words) in enumerate(zip(options.node, options.start, strict=True))
        ]
        self.target = Target(options.port, options.certificate)
        with open(f"/proc/{options.like}/environ", "rb") as file:
            pairs = (pair.partition("=") for pair in os.fsdecode(file.read()).split("\0"))
            settings = {name: value for name, _, value in pairs if name.startswith("SALTERN_") and name not in NOT_OURS}
        for name in [name for name in os.environ if name.startswith("SALTERN_")]:
            del os.environ[name]
        settings |= {"SALTERN_LISTEN": f"127.0.0.1:{options.port}", "SALTERN_DATABASE_URL": options.database}
        self.server = Supervised(Recipe([options.executable, "serve"], options.log, settings))
        self.writers = Writers(self.target, 71)
        # What scenarios have left behind: they restore items, and write rows by hand.
        self.known = self.contradictions()
        self.breakages: dict[str, Callable[[random.Random], None]] = {
            "the server is killed": self.kill_server,
            "a worker is killed": lambda dice: dice.choice(self.nodes[1:]).kill(signal.SIGKILL),
            "the coordinator crashes": lambda dice: self.nodes[0].kill(signal.SIGQUIT),
            "all sessions end, on one node after another": self.end_sessions,
        }

    def kill_server(self, dice: random.Random) -> None:
        starts = self.server.starts
        self.server.send(signal.SIGKILL)
        self.server.wait_for_start(starts)

    def end_sessions(self, dice: random.Random) -> None:
        for node in self.nodes:
            node.end_sessions()
            time.sleep(dice.uniform(0, 0.5))

    def is_serving(self) -> bool:
        """Ready and not degraded, and a write is taken."""
        return self.writers.are_served(5, "ready")

    def settle(self) -> bool:
        """Whether nothing is under way any more. Two-phase commits that were cut off are brought to their end, as the
        cluster itself does once a minute."""
        for node in self.nodes:
            node.database.run("SELECT recover_prepared_transactions()")
        busy = (
            "SELECT (SELECT count(*) FROM pg_prepared_xacts) + (SELECT count(*) FROM pg_stat_activity"
            " WHERE usename = 'saltern_app' AND state <> 'idle')"
        )
        return all(node.database.number(busy) == 0 for node in self.nodes)

    def round(self, breakage: Callable[[random.Random], None], seed: int) -> list[str]:
        wait_until(RECOVERY, self.is_serving, "the server to serve")
        dice = random.Random(seed)
        with self.writers.writing(seed):
            self.writers.go_on(dice.uniform(1, 2))
            breakage(dice)
            wait_until(RECOVERY, self.is_serving, "the service to be whole again")
            self.writers.go_on(1)
        wait_until(RECOVERY, self.settle, "transactions to end")
        self.writers.look()
        return self.writers.take_complaints() + [
            f"{what}: {count - self.known[what]}" for what, count in self.contradictions().items() if count > self.known[what]
        ]

    def contradictions(self) -> dict[str, int]:
        """How many there are of each kind. The rows are fetched first: what is compared lies by different keys."""
        tables = [
            "accounts", "logins", "items", "deleted_contents", "replaced_contents", "sessions", "shares",
            "account_shares", "security_events",
        ]
        fetch = "".join(f"CREATE TEMP TABLE {table} AS SELECT * FROM saltern.{table};\n" for table in tables)
        return {
            what: self.nodes[0].database.number(
                f"{fetch}SELECT count(*) FROM ({sql.replace('saltern.', 'pg_temp.')}) contradiction"
            )
            for what, sql in CONTRADICTIONS.items()
        }


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def say_events(log: str) -> None:
    """What the server has said of late, but for requests that went well."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if '"event":"request"' not in line or '"level":"error"' in line]
    for line in lines[-20:]:
        say(f"  {line.rstrip()}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4, help="of each breakage one after another")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--like", type=int, required=True, help="the process whose settings the server has")
    for name in ["node", "start"]:
        parser.add_argument(f"--{name}", action="append", required=True, help="of each node, the coordinator first")
    for name in ["executable", "certificate", "database", "directory", "log"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    chaos = Chaos(options)
    failed = 0
    try:
        for number in range(options.rounds):
            name, breakage = list(chaos.breakages.items())[number % len(chaos.breakages)]
            before = chaos.writers.acknowledged
            try:
                complaints = chaos.round(breakage, options.seed + number)
            except (TimeoutError, RuntimeError) as error:
                complaints = [str(error), *chaos.writers.take_complaints()]
            written = chaos.writers.acknowledged - before
            say(f"{name}: {written} writes acknowledged, {len(complaints)} complaints, seed {options.seed + number}")
            for complaint in complaints[:20]:
                say(f"error: {complaint}")
            if complaints:
                say_events(options.log)
            failed += bool(complaints)
    finally:
        chaos.server.end(signal.SIGTERM)
    sys.exit(1 if failed else 0)


main()
