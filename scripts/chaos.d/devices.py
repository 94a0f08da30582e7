"""Gives devices slow lines and wrong clocks, and looks whether everything arrives, once, and nothing is removed too early.

Called by scripts/chaos --devices, which has made the database and the certificate.
"""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from breakages import faked, wind
from chaos import answers
from household import Household, Town
from processes import Recipe, Supervised, wait_until
from slow_lines import SLOW_LINES
from wrong_clocks import Clocks, clocks

from traffic.database import Database
from traffic.hurry import build_hurry
from traffic.pins import pin_of
from traffic.wire import Target

#: How many households there are at a time.
AT_ONCE = 3


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def postgres_words(words: str, file: str) -> list[str]:
    """The words that start PostgreSQL with the clock of the file. Its system user has to make what faketime shares."""
    split = shlex.split(words)
    place = next(number for number, word in enumerate(split) if word.endswith("/postgres"))
    environment = [f"{name}={value}" for name, value in faked(file, "libfaketime.so.1").items()]
    return [*split[:place], "env", *environment, *split[place:]]


def one(name: str, body: Callable[[], Household], seed: int) -> bool:
    """Whether nothing is wrong; it tells what is."""
    begin = time.monotonic()
    try:
        complaints = body().complaints
    except Exception as error:  # the others go on
        complaints = [f"{type(error).__name__}: {error}"]
    say(f"{name:12}{time.monotonic() - begin:6.1f} s  {'held' if not complaints else 'failed'}")
    for complaint in complaints[:20]:
        say(f"error: {complaint}")
    if complaints:
        say(f"again: scripts/chaos --devices --only {name} --seed {seed}")
    return not complaints


def run(options: argparse.Namespace, names: list[str], work: Path) -> list[str]:
    """What has failed."""
    files = [os.path.join(options.work, name) for name in ("server-clock", "database-clock")]
    for file in files:
        wind(file, 0)
    recipe = Recipe(postgres_words(options.postgres, files[1]), os.path.join(options.work, "postgres.log"))
    postgres = Supervised(recipe)
    superuser = Database(options.superuser_database)
    wait_until(300, lambda: answers(superuser), "PostgreSQL")
    server = Supervised(Recipe([options.executable, "serve"], os.path.join(options.work, "server.log")))
    try:
        turned = Clocks(server, Target(options.port, options.certificate), files[0], files[1])
        wait_until(300, turned.answers, "the server")
        town = Town(
            options.client, work, options.certificate, pin_of(options.certificate), options.port, superuser,
            build_hurry(work), options.seed, say if options.verbose else lambda _: None,
        )  # fmt: skip
        lines = {name: body for name, body in SLOW_LINES.items() if name in names}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ends = [pool.submit(one, name, partial(body, town), options.seed) for name, body in lines.items()]
            failed = [name for name, end in zip(lines, ends, strict=True) if not end.result()]
        # By themselves: they turn everybody's clock.
        if "clocks" in names and not one("clocks", lambda: clocks(town, turned), options.seed):
            failed.append("clocks")
        return failed
    finally:
        server.end(signal.SIGTERM)
        postgres.end(signal.SIGINT)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/chaos --devices")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)), help="it is printed")
    parser.add_argument("--only", help="some of them, by name, with commas between them")
    parser.add_argument("--verbose", action="store_true", help="the bytes that went and their bounds; each command's end")
    parser.add_argument("--port", type=int, required=True, help=argparse.SUPPRESS)
    for name in ["certificate", "client", "executable", "postgres", "superuser-database", "work"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [*SLOW_LINES, "clocks"]
    if options.only:
        wanted = options.only.split(",")
        if unknown := set(wanted) - set(names):
            parser.error(f"there is no {', '.join(sorted(unknown))}")
        names = wanted
    os.umask(0o077)
    say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="saltern-devices-") as folder:
        failed = run(options, names, Path(folder))
    say(f"{len(names) - len(failed)} of {len(names)} held" + "; not: " * bool(failed) + ", ".join(failed))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
