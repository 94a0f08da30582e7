"""Attacks a running server, measures what its neighbours feel of it, and prints a table.

Called by scripts/hostile, which starts the server.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from typing import Any

from attacks import every_attack
from judge import Judge, NeverQuiet, Verdict
from neighbour import Household, Neighbour
from scene import Attack, Stage
from warming import warm
from traffic.people import Person, fresh_id, item, register_many, share
from traffic.wire import Connection, Target, request

PEOPLE = 12
CHANGERS = 4
BLOCK = 11


async def make_household(target: Target) -> Household:
    """The accounts of the well-behaved."""
    people = await register_many(target, "neighbour", PEOPLE, BLOCK)
    changers = await register_many(target, "changer", CHANGERS, BLOCK)
    connection = await Connection.open(target)

    async def create(person: Person, size: int) -> str:
        item_id = fresh_id()
        made = await connection.exchange(
            request("PUT", f"/v1/items/{item_id}", item(size), person.token, {"If-None-Match": "*"})
        )
        if made.status != 201:
            raise RuntimeError(f"an item of {size} bytes: {made.status}")
        return item_id

    items = [await create(person, 1024) for person in people]
    large_items = [await create(person, 80 * 1024) for person in people]
    made = await connection.exchange(request("POST", "/v1/shares", share(1024), people[0].token))
    connection.close()
    return Household(people, items, large_items, made.json["id"], changers)


def table_line(verdict: Verdict) -> str:
    before, peak, after = (kilobytes / 1024 for kilobytes in verdict.resident)
    milliseconds = [
        1000 * value
        for value in (
            verdict.undisturbed[0],
            verdict.during.p50,
            verdict.undisturbed[1],
            verdict.during.p99,
            verdict.limit,
            verdict.during.worst,
        )
    ]
    figures = "".join(f"{value:9.1f}" for value in milliseconds)
    return f"{verdict.attack.name:17}{figures}{before:8.0f}{peak:6.0f}{after:6.0f}  {outcome(verdict)}"


def outcome(verdict: Verdict) -> str:
    text = "; ".join(verdict.complaints) or "held"
    if verdict.was_disturbed:
        text = f"not judged: others took {verdict.strangers[1]:.1f} processors; {text}"
    return text if verdict.tries == 1 else f"{text} (try {verdict.tries})"


HEADER = (
    f"{'':17}{'p50 ms':>9}{'during':>9}{'p99 ms':>9}{'during':>9}{'limit':>9}{'worst':>9}{'RSS MB':>8}{'peak':>6}"
    f"{'after':>6}"
)


def as_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "attack": verdict.attack.name,
        "says": verdict.attack.says,
        "undisturbedMilliseconds": {"p50": verdict.undisturbed[0] * 1e3, "p99": verdict.undisturbed[1] * 1e3},
        "duringMilliseconds": {
            "p50": verdict.during.p50 * 1e3,
            "p99": verdict.during.p99 * 1e3,
            "worst": verdict.during.worst * 1e3,
        },
        "requests": verdict.during.count,
        "slowestMilliseconds": {kind: time * 1e3 for kind, time in verdict.during.slowest.items()},
        "limitMilliseconds": verdict.limit * 1e3,
        "lateMilliseconds": verdict.during.lateness * 1e3,
        "residentKilobytes": dict(zip(["before", "peak", "after"], verdict.resident, strict=True)),
        "attackersSaw": dict(verdict.attackers),
        "complaints": verdict.complaints,
        "processorsOfOthers": dict(zip(["undisturbed", "during"], verdict.strangers, strict=True)),
        "isJudged": not verdict.was_disturbed,
        "tries": verdict.tries,
    }


def names(attacks: list[str]) -> str:
    return f": {', '.join(attacks)}" if attacks else ""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(options: argparse.Namespace) -> list[Attack]:
    attacks = every_attack()
    if options.only:
        names = options.only.split(",")
        if unknown := set(names) - {attack.name for attack in attacks}:
            raise SystemExit(f"hostile: there is no attack {', '.join(sorted(unknown))}")
        return [attack for attack in attacks if attack.name in names]
    return attacks if options.all else [attack for attack in attacks if attack.is_quick]


def run(options: argparse.Namespace) -> list[Verdict]:
    target = Target.of(options.url, os.path.join(options.home, "tls", "certificate.pem"))
    stage = Stage(target, options.owner_database)
    with open(os.path.join(options.home, "server.pid"), encoding="ascii") as file:
        server = int(file.read())
    attacks = chosen(options)
    household = asyncio.run(make_household(target))
    for attack in attacks:
        asyncio.run(attack.prepare(stage))
    asyncio.run(warm(stage, 3))
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        neighbour = Neighbour(target, household, os.path.join(folder, "samples"))
        neighbour.start()
        judge = Judge(stage, neighbour, server, options.seconds, max(2.5, options.seconds / 2), options.tries)
        judge.watch(time.monotonic() + 2)
        say(HEADER)
        for attack in attacks:
            try:
                verdicts.append(judge.judge(attack))
            except NeverQuiet as failure:
                raise SystemExit(f"error: before {attack.name}, {failure}") from failure
            say(table_line(verdicts[-1]))
            if options.verbose:
                say(f"    {attack.says}; they saw {dict(verdicts[-1].attackers)}")
                slowest = sorted(verdicts[-1].during.slowest.items(), key=lambda each: -each[1])
                say("    slowest: " + ", ".join(f"{kind} {1000 * time:.0f} ms" for kind, time in slowest))
        neighbour.stop()
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/hostile")
    parser.add_argument("--seconds", type=float, default=15, help="how long each attack lasts (default 15; at least 4)")
    parser.add_argument(
        "--tries", type=int, default=3, help="how often an attack that succeeds is repeated (default 3)"
    )
    parser.add_argument("--only", help="some attacks, by name, with commas between them")
    parser.add_argument("--all", action="store_true", help="also each kind of slow client by itself")
    parser.add_argument("--json", action="store_true", help="print one JSON object in the end")
    parser.add_argument("--verbose", action="store_true", help="say what the attackers saw")
    for name in ["url", "home", "owner-database"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 4 <= options.seconds <= 600:
        parser.error("--seconds goes from 4 to 600")
    verdicts = run(options)
    if options.json:
        print(json.dumps([as_json(verdict) for verdict in verdicts], indent=2))
    unjudged = [verdict.attack.name for verdict in verdicts if verdict.was_disturbed]
    failed = [verdict.attack.name for verdict in verdicts if verdict.complaints and not verdict.was_disturbed]
    say(f"{len(verdicts) - len(failed) - len(unjudged)} attacks held, {len(failed)} not" + names(failed))
    if unjudged:
        say(f"{len(unjudged)} not judged, because others used the machine" + names(unjudged))
    raise SystemExit(1 if failed or len(unjudged) == len(verdicts) else 0)


if __name__ == "__main__":
    main()
