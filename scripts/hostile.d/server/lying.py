"""Answers saltern-client with lies, from behind the pinned key, and prints what becomes of each.

Called by scripts/hostile --server, which starts the true server.
"""

import argparse
import logging
import os
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from flaws import flaws
from history_lies import history_lies
from journey import Journey
from json_lies import json_lies
from titles import judge_titles
from trust_lies import trust_lies
from wire_lies import wire_lies

from traffic.hurry import build_hurry
from traffic.pins import pin_of
from traffic.relay import Lie, Relay
from traffic.wire import Target


class Trial(Protocol):
    """Something that is tried with one account."""

    @property
    def name(self) -> str: ...
    def complaints(self, journey: Journey) -> list[str]: ...


@dataclass
class LieTrial:
    """What a client makes of a lie."""

    lie: Lie
    is_verbose: bool
    summary: str = ""

    @property
    def name(self) -> str:
        return self.lie.name

    def complaints(self, journey: Journey) -> list[str]:
        verdict = journey.judge(self.lie)
        lines = [f"{verdict}"]
        if self.is_verbose:
            for outcome in verdict.outcomes:
                lines.append(f"    {outcome.seconds:5.1f} s {outcome.kilobytes >> 10:4} MB  {outcome}")
        if verdict.complaints:
            lines.append(f"    {self.lie.says}")
        self.summary = "\n".join(lines)
        return verdict.complaints


class TitlesTrial:
    """What a folder in sync makes of other devices' names."""

    name = "titles"

    def complaints(self, journey: Journey) -> list[str]:
        return judge_titles(journey)


class ArrivalTrial:
    """What a new device gets of an account to which lies were told."""

    name = "a new device"

    def complaints(self, journey: Journey) -> list[str]:
        return journey.arrivals()


def every_trial(options: argparse.Namespace) -> list[Trial]:
    lies = [*wire_lies(), *json_lies(options.seed), *history_lies(options.seed), *trust_lies()]
    # What waits longest begins first, and what spends its account comes last.
    lies.sort(key=lambda lie: (lie.is_spending, -lie.patience / lie.hurry))
    return [TitlesTrial(), *flaws(), *(LieTrial(lie, options.verbose) for lie in lies)]


def chosen(options: argparse.Namespace) -> list[Trial]:
    trials = every_trial(options)
    if not options.only:
        return trials
    names = set(options.only.split(","))
    if unknown := names - {trial.name for trial in trials} - {"flaws"}:
        raise SystemExit(f"hostile: there is no lie {', '.join(sorted(unknown))}")
    return [trial for trial in trials if trial.name in names or ("flaws" in names and trial.name.startswith("flaw "))]


class Court:
    """Tries everything, some at a time, each with accounts and a relay of its own."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options = options
        self.work = work
        self.certificate = str(Path(options.home, "tls", "certificate.pem"))
        self.key = str(Path(options.home, "tls", "key.pem"))
        self.hurry_library = build_hurry(work)
        self.failed: list[str] = []
        self.count = 0
        self.lock = threading.Lock()

    def journey(self, number: int) -> Journey:
        target = Target.of(self.options.url, self.certificate)
        relay = Relay(target, self.certificate, self.key)
        relay.start()
        return Journey(self.options.client, relay, self.work / str(number), self.hurry_library, pin_of(self.certificate))

    def hold(self, trials: list[Trial]) -> None:
        waiting: queue.SimpleQueue[Trial] = queue.SimpleQueue()
        for trial in trials:
            waiting.put(trial)
        count = min(self.options.at_once, len(trials))
        with ThreadPoolExecutor(count) as pool:
            for future in [pool.submit(self._work, self.journey(number), waiting) for number in range(count)]:
                future.result()

    def _work(self, journey: Journey, waiting: "queue.SimpleQueue[Trial]") -> None:
        try:
            while True:
                try:
                    trial = waiting.get_nowait()
                except queue.Empty:
                    return
                self._try(trial, journey)
        finally:
            if journey.phone is not None:
                self._try(ArrivalTrial(), journey)
            journey.end()

    def _try(self, trial: Trial, journey: Journey) -> None:
        begin = time.monotonic()
        try:
            complaints = trial.complaints(journey)
        except Exception as error:  # the others are tried all the same
            complaints = [f"{type(error).__name__}: {error}"]
            journey.end()
            trial.summary = ""  # type: ignore[attr-defined]
        result = getattr(trial, "summary", "") or "; ".join(complaints) or "held"
        with self.lock:
            self.count += 1
            say(f"{trial.name:20}{time.monotonic() - begin:6.1f} s  {result}")
            if complaints:
                self.failed.append(trial.name)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/hostile --server")
    parser.add_argument("--client", required=True, help="a built saltern-client")
    parser.add_argument("--only", help="some lies, by name, with commas between them")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn by lot (default 1)")
    parser.add_argument("--at-once", type=int, default=3, help="how many lies at a time (default 3)")
    parser.add_argument("--verbose", action="store_true", help="each command, with its time, memory and end")
    for name in ["url", "home", "owner-database"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 1 <= options.at_once <= 16:
        parser.error("--at-once goes from 1 to 16")
    os.umask(0o077)
    # It reports each byte that a client does not take.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    trials = chosen(options)
    with tempfile.TemporaryDirectory(prefix="saltern-lies-") as folder:
        court = Court(options, Path(folder))
        court.hold(trials)
    failed = court.failed
    say(f"{court.count - len(failed)} of {court.count} held" + "; not: " * bool(failed) + ", ".join(failed))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
