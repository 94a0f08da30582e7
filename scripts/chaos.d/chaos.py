"""Breaks a server and its database while people write, and looks whether everything that was acknowledged is there.

Called by scripts/chaos, which has made the database and the certificate. Here both are started, and started again
whenever they end.
"""

import argparse
import os
import random
import shlex
import signal
import sys
import threading
import time

from breakages import Breakage, Clock, Crash, FewDescriptors, Freeze, FullDisk, Kill, KillInCommit, World
from counters import contradictions
from failover import FreezePrimary, LosePrimary, SwallowPackets, judge
from processes import Recipe, Supervised, wait_until
from writer import TROUBLE, Writer

from traffic.blocking import BlockingConnection
from traffic.database import Database
from traffic.wire import Target, loopback, request

WRITERS = 8
# How long the server may take to serve again, once what was broken is whole.
RECOVERY = 120.0


class Chaos:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.target = Target(options.port, options.certificate)
        postgres = Supervised(Recipe(shlex.split(options.postgres), os.path.join(options.work, "postgres.log")))
        superuser = Database(options.superuser_database)
        wait_until(120, lambda: answers(superuser), "PostgreSQL")
        server = Supervised(Recipe([options.executable, "serve"], os.path.join(options.work, "server.log")))
        self.world = World(
            server, postgres, superuser, self.target, options.disk, options.work, options.freeze, options.network
        )
        self.recovery = 0.0
        self.writers = [Writer(self.target, loopback(70, number), number) for number in range(WRITERS)]

    def end(self) -> None:
        self.world.server.end(signal.SIGTERM)
        self.world.postgres.end(signal.SIGINT)

    def is_serving(self) -> bool:
        """Ready, and a write is taken."""
        connection = BlockingConnection(self.target, loopback(70, 200), 10)
        try:
            ready = connection.exchange(request("GET", "/v1/health/ready"))
            refused = connection.exchange(request("POST", "/v1/kdf", {"userid": "somebody@example.org"}))
            return ready.status == 200 and refused.status == 200
        except TROUBLE:
            return False
        finally:
            connection.close()

    def round(self, breakage: Breakage, seed: int) -> list[str]:
        """One round. What is wrong."""
        dice = random.Random(seed)
        breakage.prepare(self.world)
        try:
            self.break_while_they_write(breakage, dice, seed)
            self.look()
        finally:
            breakage.tidy(self.world)
        complaints = [complaint for writer in self.writers for complaint in writer.complaints]
        for writer in self.writers:
            writer.complaints = []
        return complaints + contradictions(self.world.superuser)

    def break_while_they_write(self, breakage: Breakage, dice: random.Random, seed: int) -> None:
        wait_until(RECOVERY, self.is_serving, "the server to serve")
        over = threading.Event()
        threads = [
            threading.Thread(target=writer.write_until, args=(over, seed, breakage.only_items), daemon=True)
            for writer in self.writers
        ]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0.5, 1.5))
        try:
            breakage.happen(self.world, dice)
            healed = time.monotonic()
            wait_until(RECOVERY, self.is_serving, "the server to serve again")
            self.recovery = time.monotonic() - healed
            time.sleep(0.5)
        finally:
            over.set()
            for thread in threads:
                thread.join(120)

    def look(self) -> None:
        """All writers at once. What is not answered is a complaint: nothing is broken now."""

        def look(writer: Writer) -> None:
            try:
                writer.look()
            except TROUBLE as error:
                writer.complaints.append(f"while looking: {error!r}")

        # Nothing is sent any more; what PostgreSQL has begun comes to its end.
        wait_until(
            120,
            lambda: (
                self.world.superuser.number(
                    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'saltern_app' AND state <> 'idle'"
                )
                == 0
            ),
            "transactions to end",
        )
        threads = [threading.Thread(target=look, args=(writer,), daemon=True) for writer in self.writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)

    def totals(self) -> tuple[int, int]:
        return sum(writer.acknowledged for writer in self.writers), sum(writer.lost for writer in self.writers)


def answers(database: Database) -> bool:
    try:
        return database.number("SELECT 1") == 1
    except RuntimeError:
        return False


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(options: argparse.Namespace) -> list[Breakage]:
    breakages: list[Breakage] = [Kill(), KillInCommit(), Crash(), FewDescriptors(), FullDisk(), Clock(), Freeze()]
    breakages += [FreezePrimary(), SwallowPackets(), LosePrimary()]
    if options.only:
        names = options.only.split(",")
        if unknown := set(names) - {breakage.name for breakage in breakages}:
            raise SystemExit(f"chaos: there is no breakage {', '.join(sorted(unknown))}")
        breakages = [breakage for breakage in breakages if breakage.name in names]
    if not options.disk:
        say("only root can mount a small disk: it is not filled")
        breakages = [breakage for breakage in breakages if breakage.name != "full"]
    if not options.network:
        say("only root can have a network of its own: it loses no packets")
        breakages = [breakage for breakage in breakages if not breakage.needs_network]
    return breakages


def run(options: argparse.Namespace) -> int:
    breakages = chosen(options)
    chaos = Chaos(options)
    failed = 0
    try:
        for number in range(options.rounds):
            breakage, seed, before = breakages[number % len(breakages)], options.seed + number, chaos.totals()
            started = time.monotonic()
            try:
                complaints = chaos.round(breakage, seed)
            except (TimeoutError, RuntimeError) as error:
                complaints = [str(error)]
            acknowledged, lost = (after - earlier for after, earlier in zip(chaos.totals(), before, strict=True))
            say(
                f"round {number + 1:3}  {breakage.name:12} seed {seed:<12} {acknowledged:6} writes acknowledged, "
                f"{lost:4} unknown, serving after {chaos.recovery:4.1f} s, {time.monotonic() - started:5.1f} s in all"
                + (f"; {breakage.note}" if breakage.note else "")
            )
            for complaint in complaints[:20]:
                say(f"error: {complaint}")
            if complaints:
                failed += 1
                say(f"again: scripts/chaos --rounds 1 --only {breakage.name} --seed {seed}")
                if failed == 3:
                    break
        for complaint in judge(breakages, say):
            say(f"error: {complaint}")
            failed += 1
    finally:
        chaos.end()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/chaos")
    parser.add_argument("--rounds", type=int, default=36, help="how many (default 36)")
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(4)), help="the first round's; it is printed"
    )
    parser.add_argument("--only", help="names of breakages; see scripts/chaos --help")
    parser.add_argument("--freeze", type=float, default=20, help="seconds for which PostgreSQL is stopped (default 20)")
    parser.add_argument("--port", type=int, required=True, help=argparse.SUPPRESS)
    for name in ["certificate", "executable", "postgres", "superuser-database", "work"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--disk", default="", help=argparse.SUPPRESS)
    parser.add_argument("--network", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 1 <= options.rounds <= 10_000:
        parser.error("--rounds goes from 1 to 10,000")
    failed = run(options)
    say(f"{options.rounds} rounds, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
