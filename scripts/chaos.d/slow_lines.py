"""Lines of 4 to 40 kB/s that are cut, fall silent, or end with the program, in both directions.

What is sent and received is counted at the line. The bounds:

- without an interruption everything goes once: the content, in base64 where it is JSON, and OVERHEAD beside it;
- an interruption costs at most what was under way: a chunk of a file, a batch of items, a page of changes.
"""

import itertools
import json
import signal
from collections.abc import Callable

from household import PATIENCE, Household, Town, done

from traffic.device import Device, Outcome
from traffic.line import Line

PHOTO = 600_000
#: A chunk of a file, in the server's bytes and as sent.
CHUNK = 512 << 10
#: Handshakes, heads, small replies and requests of one command.
COMMAND = 40_000
#: What a sealed item is longer by, and TLS's records: a fiftieth, and something for each photo.
OVERHEAD = 1.02
#: Bytes of items as JSON has them.
BASE64 = 4 / 3
#: A page of changes has 4 MiB of sealed bytes, and may end with an item that is longer.
PAGE = (4 << 20) + PHOTO
RATES = (4_000, 10_000, 40_000)
#: When items are interrupted: later than a photo takes, and long before a batch of 8 MiB is through.
WHILE_ITEMS = (1_000_000, 2_000_000)
#: More than a batch of 8 MiB needs for its halving to a single photo.
FRUITLESS = 4

Action = Callable[[Line, Device], None]


def _kill(line: Line, device: Device) -> None:
    device.kill()
    line.break_down()


def _break(line: Line, _: Device) -> None:
    line.break_down()


#: How a command is interrupted, and what it may end with.
INTERRUPTIONS: dict[str, tuple[Action, tuple[int, ...]]] = {
    "killed": (_kill, (-signal.SIGKILL,)),
    "cut": (_break, (2, 69)),
}


def _interrupted(
    household: Household, line: Line, device: Device, count: int, *words: str, is_upward: bool = True, kind: str = ""
) -> Outcome:
    """Runs a command that is interrupted once so many bytes have moved in a direction, or ends before."""
    kind = kind or household.dice.choice(list(INTERRUPTIONS))
    act, statuses = INTERRUPTIONS[kind]
    happened: list[bool] = []

    def happens() -> None:
        happened.append(True)
        act(line, device)

    line.after(count, happens, is_upward=is_upward)
    outcome = device.run(*words, "--json", limit=PATIENCE)
    line.mend()
    # A command that is interrupted behind its last byte may have succeeded.
    allowed = {*statuses, 0} if happened else {0}
    household.expect(outcome.status in allowed, f"{kind} after {count} bytes: {outcome}")
    if outcome.status == 69:
        household.expect(outcome.code in ("connection_lost", "unreachable"), f"{kind}: {outcome}")
    if outcome.status == 2:
        household.expect(outcome.json.get("offline") is True, f"{kind}: {outcome}")
    return outcome


def _households(town: Town, name: str) -> tuple[Household, Line, Device]:
    household = Household(town, name)
    line = household.line("phone")
    phone = household.arrive("phone", line)
    line.rate = household.dice.choice(RATES)
    return household, line, phone


def _second(household: Household) -> tuple[Device, Line]:
    """Another device, which logs in."""
    line = household.line("laptop")
    laptop = household.arrive("laptop", line)
    line.rate = household.dice.choice(RATES)
    return laptop, line


def _within(household: Household, what: str, count: int, limit: float) -> None:
    household.expect(count <= limit, f"{what}: {count} bytes, at most {limit:.0f}")
    household.town.say(f"    {household.name}: {what}: {count / 1e6:.1f} MB of at most {limit / 1e6:.1f}")


def files(town: Town) -> Household:
    """Twelve photos of a folder, with interruptions; then another device fetches them with a longer file, likewise."""
    household, line, phone = _households(town, "files")
    content = household.photos(phone.folder, 12, PHOTO)
    begin, stored, runs = line.sent, household.stored_bytes(), 0
    outcome: Outcome | None = None
    while runs < 6 and (outcome is None or outcome.status != 0):
        runs += 1
        sent, count = line.sent, household.dice.randint(200_000, 2_000_000)
        outcome = _interrupted(household, line, phone, count, "sync", str(phone.folder))
        arrived = household.stored_bytes() - stored
        stored += arrived
        household.expect(
            arrived >= (line.sent - sent) / OVERHEAD - CHUNK - COMMAND,
            f"of {line.sent - sent} bytes that were sent {arrived} are kept",
        )
    done(phone.run("sync", str(phone.folder), "--json", limit=PATIENCE), 0)
    _within(
        household, f"sent with {runs} interruptions", line.sent - begin,
        content * OVERHEAD + runs * (CHUNK * OVERHEAD + COMMAND) + COMMAND,
    )  # fmt: skip
    # From here on the device has records of chunks.
    laptop, back = _second(household)
    content += household.photos(phone.folder, 1, 9 * CHUNK)
    done(phone.run("sync", str(phone.folder), "--json", limit=PATIENCE), 0)
    _fetch_files(household, laptop, back, content)
    household.same_files(phone, laptop)
    return household


def _fetch_files(household: Household, laptop: Device, line: Line, content: int) -> None:
    begin, runs = line.received, 0
    outcome: Outcome | None = None
    while runs < 6 and (outcome is None or outcome.status != 0):
        runs += 1
        count = household.dice.randint(200_000, 3_000_000)
        outcome = _interrupted(household, line, laptop, count, "sync", str(laptop.folder), is_upward=False)
    done(laptop.run("sync", str(laptop.folder), "--json", limit=PATIENCE), 0)
    _within(
        household, f"received with {runs} interruptions", line.received - begin,
        content * BASE64 * OVERHEAD + runs * (CHUNK * BASE64 * OVERHEAD + COMMAND) + COMMAND,
    )  # fmt: skip


def _put_photos(household: Household, device: Device, count: int) -> int:
    pictures = household.home / "pictures"
    content = household.photos(pictures, count, PHOTO)
    for path in pictures.iterdir():
        done(device.run("put", str(path), "--json", limit=PATIENCE), 0)
        path.rename(household.home / path.name)
    return content


def whole_items(town: Town) -> Household:
    """Twelve photos as items, in one batch that takes more than the 120 s of a short exchange; and back, in pages."""
    household, line, phone = _households(town, "whole-items")
    laptop, back = _second(household)
    content = _put_photos(household, phone, 12)
    begin = line.sent
    outcome = phone.run("sync", "--json", limit=PATIENCE)
    household.expect(outcome.status == 0, f"{outcome}")
    _within(household, "sent at once", line.sent - begin, content * BASE64 * OVERHEAD + COMMAND)
    begin = back.received
    outcome = laptop.run("sync", "--json", limit=PATIENCE)
    household.expect(outcome.status == 0, f"{outcome}")
    _within(household, "received at once", back.received - begin, content * BASE64 * OVERHEAD + COMMAND)
    _same_items(household, laptop)
    return household


def items(town: Town) -> Household:
    """Eight photos as items, with interruptions; then another device fetches them, likewise."""
    household, line, phone = _households(town, "items")
    laptop, back = _second(household)
    content = _put_photos(household, phone, 8)
    begin, fruitless, runs, left = line.sent, 0, 0, 8
    while left and runs < 8 + FRUITLESS:
        runs += 1
        # A process that is killed learns nothing from an error.
        kind = "killed" if left == 8 else ""
        _interrupted(household, line, phone, household.dice.randint(*WHILE_ITEMS), "sync", kind=kind)
        before, left = left, _unsent(phone)
        town.say(f"    items: after sync {runs} {left} photos are left, {line.sent - begin} bytes were sent")
        fruitless = fruitless + 1 if left == before else 0
        household.expect(fruitless <= FRUITLESS, f"{fruitless} syncs in a row have brought nothing there")
    if left:
        household.expect(False, f"{left} photos were not sent in {runs} syncs")
        return household
    _within(
        household, f"sent in {runs} syncs", line.sent - begin,
        content * BASE64 * OVERHEAD + (runs - 1) * WHILE_ITEMS[1] + runs * COMMAND,
    )  # fmt: skip
    _fetch_items(household, laptop, back, content)
    return household


def _unsent(device: Device) -> int:
    count: int = done(device.run("status", "--json", limit=PATIENCE)).json["unsent"]
    return count


def _fetch_items(household: Household, laptop: Device, line: Line, content: int) -> None:
    begin, runs = line.received, 0
    for _ in range(3):
        runs += 1
        _interrupted(household, line, laptop, household.dice.randint(500_000, 7_000_000), "sync", is_upward=False)
    done(laptop.run("sync", "--json", limit=PATIENCE), 0)
    _within(
        household, f"received with {runs} interruptions", line.received - begin,
        content * BASE64 * OVERHEAD + runs * (PAGE * BASE64 * OVERHEAD + COMMAND) + COMMAND,
    )  # fmt: skip
    _same_items(household, laptop)


def _same_items(household: Household, device: Device) -> None:
    """Complains of photos that a device does not have as items."""
    for path in sorted(household.home.glob("photo-*.jpg")):
        got = household.home / "got"
        device.run("get", path.name, "--output", str(got), "--json", limit=PATIENCE)
        is_same = got.is_file() and got.read_bytes() == path.read_bytes()
        household.expect(is_same, f"another device lacks {path.name} as it was")
        got.unlink(missing_ok=True)


def hiccups(town: Town) -> Household:
    """Connections end, and the next ones are good: one command is enough, and a file of one chunk too many is not sent twice."""
    household, line, phone = _households(town, "hiccups")
    content = household.photos(phone.folder, 4, PHOTO)
    begin = line.sent
    cuts = itertools.count()

    def cut() -> None:
        if next(cuts) < 2:
            line.after(household.dice.randint(700_000, 900_000), cut)
        line.cut()

    line.after(household.dice.randint(100_000, 900_000), cut)
    outcome = phone.run("sync", str(phone.folder), "--json", limit=PATIENCE)
    household.expect(outcome.status == 0, f"{outcome}")
    _within(
        household, "sent with 3 lost connections", line.sent - begin,
        content * OVERHEAD + 3 * (CHUNK * OVERHEAD + COMMAND) + COMMAND,
    )  # fmt: skip
    return household


def silence(town: Town) -> Household:
    """A line that carries nothing any more, and says nothing of it: 69, and for a folder 2 with `offline`."""
    household, line, phone = _households(town, "silence")
    household.photos(phone.folder, 1, PHOTO)
    _put_photos(household, phone, 1)
    for words, count in (
        (["sync"], household.dice.randint(1, 5_000)),
        (["sync"], household.dice.randint(100_000, 700_000)),
        (["sync", str(phone.folder)], household.dice.randint(1, 5_000)),
    ):
        line.after(count, line.fall_silent)
        outcome = phone.run(*words, "--json", limit=PATIENCE)
        line.mend()
        if len(words) == 1:
            household.expect(
                outcome.status == 69 and outcome.code in ("timed_out", "unreachable"), f"silent after {count}: {outcome}"
            )
        else:
            is_offline = outcome.status == 2 and json.loads(outcome.output).get("offline") is True
            household.expect(is_offline, f"silent after {count}: {outcome}")
    done(phone.run("sync", "--json", limit=PATIENCE), 0)
    done(phone.run("sync", str(phone.folder), "--json", limit=PATIENCE), 0)
    household.expect(_unsent(phone) == 0, "something was not sent once the line was whole")
    return household


SLOW_LINES = {"files": files, "whole-items": whole_items, "items": items, "hiccups": hiccups, "silence": silence}
