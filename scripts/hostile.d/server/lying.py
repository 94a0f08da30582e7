"""Answers saltern-client with lies, from behind the pinned key, and prints what becomes of each.

Called by scripts/hostile --server, which starts the true server.
"""

import argparse
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from history_lies import history_lies
from journey import Journey, Verdict
from json_lies import json_lies
from titles import judge_titles
from trust_lies import trust_lies
from wire_lies import wire_lies

from traffic.hurry import build_hurry
from traffic.pins import pin_of
from traffic.relay import Lie, Relay
from traffic.wire import Target

TITLES = "titles"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Elsewhere:
    """Another server, to which nothing must connect."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.count = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            self.count += 1
            connection.close()


def chosen(lies: list[Lie], only: str | None) -> tuple[list[Lie], bool]:
    if not only:
        return lies, True
    names = set(only.split(","))
    if unknown := names - {lie.name for lie in lies} - {TITLES}:
        raise SystemExit(f"hostile: there is no lie {', '.join(sorted(unknown))}")
    return [lie for lie in lies if lie.name in names], TITLES in names


def judge_all(options: argparse.Namespace, work: Path) -> list[str]:
    elsewhere = Elsewhere()
    lies = [
        *wire_lies(elsewhere.port), *json_lies(options.seed), *history_lies(options.seed), *trust_lies()
    ]  # fmt: skip
    lies.sort(key=lambda lie: lie.is_spending)
    lies, has_titles = chosen(lies, options.only)
    tls = Path(options.home, "tls")
    certificate = str(tls / "certificate.pem")
    relay = Relay(Target(int(options.url.rpartition(":")[2]), certificate), certificate, str(tls / "key.pem"))
    relay.start()
    journey = Journey(options.client, relay, work, build_hurry(work), pin_of(certificate))
    failed = []
    for lie in lies:
        begin = time.monotonic()
        verdict: Verdict = journey.judge(lie)
        say(f"{verdict}" if not options.verbose else f"{time.monotonic() - begin:5.1f} s  {verdict}")
        if options.verbose:
            for outcome in verdict.outcomes:
                say(f"    {outcome.seconds:5.1f} s {outcome.kilobytes >> 10:4} MB  {outcome}")
        if verdict.complaints:
            failed.append(lie.name)
            say(f"    {lie.says}")
    if has_titles:
        complaints = judge_titles(journey)
        say(f"{TITLES:20}{'; '.join(complaints) or 'held'}")
        failed += [TITLES] if complaints else []
    journey.end()
    if elsewhere.count:
        failed.append(f"redirects ({elsewhere.count} connections to another server)")
    say(f"{len(lies) + has_titles - len(failed)} lies held, {len(failed)} not" + ": " * bool(failed) + ", ".join(failed))
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/hostile --server")
    parser.add_argument("--client", required=True, help="a built saltern-client")
    parser.add_argument("--only", help="some lies, by name, with commas between them")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn by lot (default 1)")
    parser.add_argument("--verbose", action="store_true", help="each command, with its time, memory and end")
    for name in ["url", "home", "owner-database"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.umask(0o077)
    # It reports each byte that a client does not take.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="saltern-lies-") as folder:
        raise SystemExit(1 if judge_all(options, Path(folder)) else 0)


if __name__ == "__main__":
    main()
