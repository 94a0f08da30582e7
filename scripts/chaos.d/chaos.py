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
import time

from breakages import Breakage, Clock, Crash, FewDescriptors, Freeze, FullDisk, Kill, KillInCommit, World
from counters import contradictions
from failover import MORE_ROUNDS, Failover, FreezePrimary, LosePrimary, SwallowPackets, judge
from processes import Recipe, Supervised, wait_until
from writers import Writers

from traffic.database import Database
from traffic.wire import Target

# How long the server may take to serve again, once what was broken is whole.
RECOVERY = 180.0


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
        self.writers = Writers(self.target, 70)

    def end(self) -> None:
        self.world.server.end(signal.SIGTERM)
        self.world.postgres.end(signal.SIGINT)

    def is_serving(self) -> bool:
        return self.writers.are_served(10)

    def round(self, breakage: Breakage, seed: int) -> list[str]:
        """One round. What is wrong."""
        dice = random.Random(seed)
        breakage.prepare(self.world)
        try:
            self.break_while_they_write(breakage, dice, seed)
            self.look()
        finally:
            breakage.tidy(self.world)
        return self.writers.take_complaints() + contradictions(self.world.superuser)

    def break_while_they_write(self, breakage: Breakage, dice: random.Random, seed: int) -> None:
        wait_until(RECOVERY, self.is_serving, "the server to serve")
        with self.writers.writing(seed, breakage.only_items):
            self.writers.go_on(dice.uniform(0.5, 1.5))
            breakage.happen(self.world, dice)
            healed = time.monotonic()
            wait_until(RECOVERY, self.is_serving, "the server to serve again")
            self.recovery = time.monotonic() - healed
            self.writers.go_on(0.5)

    def look(self) -> None:
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
        self.writers.look()

    def totals(self) -> tuple[int, int]:
        return self.writers.acknowledged, self.writers.lost


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


def one_round(chaos: Chaos, number: int, breakage: Breakage, seed: int) -> bool:
    """Whether nothing is wrong; it tells what is."""
    before, started = chaos.totals(), time.monotonic()
    try:
        complaints = chaos.round(breakage, seed)
    except (TimeoutError, RuntimeError) as error:
        complaints = [str(error), *chaos.writers.take_complaints()]
    acknowledged, lost = (after - earlier for after, earlier in zip(chaos.totals(), before, strict=True))
    say(
        f"round {number + 1:3}  {breakage.name:12} seed {seed:<12} {acknowledged:6} writes acknowledged, "
        f"{lost:4} unknown, serving after {chaos.recovery:4.1f} s, {time.monotonic() - started:5.1f} s in all"
        + (f"; {breakage.note}" if breakage.note else "")
    )
    for complaint in complaints[:20]:
        say(f"error: {complaint}")
    if complaints:
        say(f"again: scripts/chaos --rounds 1 --only {breakage.name} --seed {seed}")
    return not complaints


def run(options: argparse.Namespace) -> tuple[int, int]:
    """How many rounds there were, and how much is wrong."""
    breakages = chosen(options)
    chaos = Chaos(options)
    number, failed, more = 0, 0, MORE_ROUNDS
    try:
        planned = [breakages[number % len(breakages)] for number in range(options.rounds)]
        while planned and failed < 3:
            breakage = planned.pop(0)
            failed += not one_round(chaos, number, breakage, options.seed + number)
            number += 1
            if not planned and not failed and more:
                more -= 1
                planned = [slow for slow in breakages if isinstance(slow, Failover) and slow.wants_more]
        for complaint in judge(breakages, say):
            say(f"error: {complaint}")
            failed += 1
    finally:
        chaos.end()
    return number, failed


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
    rounds, failed = run(options)
    say(f"{rounds} rounds, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
