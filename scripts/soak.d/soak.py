"""Sends requests of every route to a running server and watches what it holds on to.

Called by scripts/soak, which starts the server.
"""

import argparse
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection as Pipe
from typing import Any

from trend import Trend
from visitor import Disturbed, Visitor

from traffic import process
from traffic.database import Database
from traffic.wire import Target, loopback

WORKERS = 4
LIFE = 250
SAMPLES = 60
# What comes before has filled caches and pools.
WARM_UP = 0.4
# What each value may seem to grow by until the end, in its own unit.
ALLOWANCES = {
    "resident MB": 3.0,
    # A pool opens its last connections whenever chance first has need of them, and each has a descriptor.
    "descriptors": 12.0,
    "PostgreSQL connections": 8.0,
    # Each of some twenty backends keeps what its largest statement took: less and less is added, the longer it runs.
    "PostgreSQL private MB": 100.0,
    # Likewise with what a session is seldom asked: three memory contexts, which a line takes for up to four and a half.
    "prepared statements": 15.0,
}
OPERATION = re.compile(r"^    (get|put|post|delete|head):$")
# What a backend logs of its memory: a context below its cache, or how many more there are than it lists.
CONTEXTS = re.compile(r"\[(\d+)\] .*level: 2; (CachedPlanSource|CachedPlan|\d+ more child contexts)")
# The last line of that.
LOGGED = re.compile(r"\[(\d+)\] .*Grand total")
# Seconds for it.
PATIENCE = 300.0
# How many visitors of one process may end by a slow machine.
DISTURBANCES = 20
PATH = re.compile(r"^  (/\S+):$")


def operations(openapi: str) -> set[str]:
    """Every operation of openapi.yaml, as `METHOD /path`."""
    found, path = set(), ""
    with open(openapi, encoding="utf-8") as file:
        for line in file:
            if match := PATH.match(line):
                path = match.group(1)
            elif path and (match := OPERATION.match(line)):
                found.add(f"{match.group(1).upper()} {path}")
    return found


def work(target: Target, number: int, seed: int, share: int, progress: Any, allowed: Any, results: Pipe) -> None:
    """One of the processes that send. Several visitors, so that connections are opened and closed too.

    None comes while the measurements are far behind, as they are on a machine that has much else to do. A visitor ends at the
    first reply of a slow machine, so that no request is repeated. Its account stays, which is little beside the allowances.
    """
    counts: Counter[str] = Counter()
    failure = None
    life = disturbances = 0
    try:
        while progress[number] < share:
            while sum(progress[:]) > allowed.value:
                time.sleep(0.05)
            visitor = Visitor(target, loopback(60, number), seed + life * WORKERS + number)
            try:
                visitor.live(min(LIFE, max(60, share - progress[number])))
            except Disturbed as disturbance:
                disturbances += 1
                say(f"disturbed: {disturbance}")
                if disturbances > DISTURBANCES:
                    raise
                time.sleep(1)
            finally:
                visitor.connection.close()
                counts += visitor.counts
                progress[number] += visitor.done
            life += 1
    except Exception as error:  # noqa: BLE001  (told to the process that judges)
        failure = repr(error)
    results.send((counts, failure, disturbances))


class Watch:
    """What the server and its database hold."""

    def __init__(self, server: int, superuser: Database, log: str):
        self.server = server
        self.superuser = superuser
        self.log = log

    def look(self) -> dict[str, float]:
        backends = self.backends()
        return {
            "resident MB": process.resident_kilobytes(self.server) / 1024,
            "descriptors": self.descriptors(),
            "PostgreSQL connections": len(backends),
            "PostgreSQL private MB": sum(map(process.private_kilobytes, backends)) / 1024,
            "prepared statements": self.statements(),
        }

    def backends(self) -> set[int]:
        """The server's connections to the database."""
        rows = self.superuser.rows("SELECT pid FROM pg_stat_activity WHERE usename = 'saltern_app'")
        return {int(row[0]) for row in rows}

    def descriptors(self) -> float:
        """What only root can count of a process that does not let itself be dumped; nobody else sees it grow."""
        try:
            return process.descriptors(self.server)
        except PermissionError:
            return 0

    def statements(self) -> float:
        """What the fullest backend keeps below its cache: for each prepared statement one or two memory contexts.

        pg_prepared_statements shows a session its own only; but each backend can be told to log its memory contexts.
        """
        start = os.path.getsize(self.log)
        asked = self.backends()
        self.superuser.run(f"SELECT pg_log_backend_memory_contexts(pid) FROM unnest(ARRAY{sorted(asked)}::integer[]) pid")
        deadline = time.monotonic() + PATIENCE
        while True:
            time.sleep(0.1)
            with open(self.log, encoding="utf-8", errors="replace") as file:
                file.seek(start)
                text = file.read()
            # A backend that has ended logs nothing.
            silent = asked - set(map(int, LOGGED.findall(text)))
            if not silent or not silent & self.backends():
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {PATIENCE:.0f} s {len(silent)} of {len(asked)} backends have not logged their memory")
        counts: Counter[str] = Counter()
        for backend, what in CONTEXTS.findall(text):
            counts[backend] += int(what.split()[0]) if what[0].isdigit() else 1
        return max(counts.values(), default=0)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> list[str]:
    target = Target.of(options.url, os.path.join(options.home, "tls", "certificate.pem"))
    with open(os.path.join(options.home, "server.pid"), encoding="ascii") as file:
        server = int(file.read())
    superuser = Database(options.owner_database.replace("saltern_owner@", "postgres@"))
    watch = Watch(server, superuser, os.path.join(options.home, "postgres.log"))
    context = multiprocessing.get_context("spawn")
    step = max(1, options.requests // SAMPLES)
    progress, allowed = context.Array("q", WORKERS), context.Value("q", 2 * step)
    pipes = []
    for number in range(WORKERS):
        receiver, sender = context.Pipe(duplex=False)
        share = options.requests // WORKERS
        words = (target, number, options.seed, share, progress, allowed, sender)
        context.Process(target=work, args=words, daemon=True).start()
        pipes.append(receiver)
    say(f"{'requests':>10}" + "".join(f"{name:>24}" for name in ALLOWANCES))
    series: list[tuple[int, dict[str, float]]] = []
    while not all(pipe.poll() for pipe in pipes):
        done = sum(progress[:])
        if done >= (len(series) + 1) * step:
            series.append((done, watch.look()))
            allowed.value = (len(series) + 2) * step
            if len(series) % options.every == 0:
                say(f"{done:>10,}" + "".join(f"{value:>24,.1f}" for value in series[-1][1].values()))
        time.sleep(0.05)
    counts: Counter[str] = Counter()
    complaints = []
    disturbed = 0
    for pipe in pipes:
        some, failure, disturbances = pipe.recv()
        counts += some
        disturbed += disturbances
        if failure:
            complaints.append(failure)
    say(f"{disturbed} visitors were disturbed by a slow machine")
    say(f"{counts.total():,} requests: " + ", ".join(f"{name} × {count:,}" for name, count in counts.most_common()))
    if missing := operations(options.openapi) - set(counts):
        complaints.append(f"nobody used {', '.join(sorted(missing))}")
    return complaints + growing(series)


def growing(series: list[tuple[int, dict[str, float]]]) -> list[str]:
    """Which values grow without end."""
    late = series[int(len(series) * WARM_UP) :]
    if len(late) < 10:
        return ["there were too few measurements"]
    found = []
    for name, allowance in ALLOWANCES.items():
        trend = Trend.of([(done, values[name]) for done, values in late])
        say(
            f"{name}: {trend.growth:+.2f} from request {late[0][0]:,} to {late[-1][0]:,} "
            f"({trend.certainty:+.1f} standard errors)"
        )
        if trend.is_real(allowance):
            found.append(f"{name} grow: {trend.growth:.1f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/soak")
    parser.add_argument("--requests", type=int, default=1_000_000, help="how many in all (default 1,000,000)")
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(4)), help="what the visitors' dice begin with"
    )
    parser.add_argument("--every", type=int, default=5, help="print each so many measurements (default 5)")
    for name in ["url", "home", "owner-database", "openapi"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 2_000 <= options.requests <= 100_000_000:
        parser.error("--requests goes from 2,000 to 100,000,000")
    say(f"seed {options.seed}")
    complaints = run(options)
    for complaint in complaints:
        say(f"error: {complaint}")
    raise SystemExit(1 if complaints else 0)


if __name__ == "__main__":
    main()
