"""Clocks of devices and servers that jump, or run at another speed.

Content is removed for good by the age of the device's store, which is counted here as docs/kit.md says. Before it is due
everything has to be there, whatever the clocks have shown; soon after it is due it has to be gone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time

from breakages import faked, wind
from household import PATIENCE, Household, Town, done
from processes import Supervised, wait_until

from traffic.blocking import BlockingConnection
from traffic.device import Device, Outcome
from traffic.wire import Target, request

DAY = 86_400
KEPT_DAYS = 30.0
#: One reading of the clock makes a store no older than this.
STEP_DAYS = 7.0


@dataclass
class Clocks:
    """The clocks of the server and of its database: days that they are ahead."""

    server: Supervised
    target: Target
    server_file: str
    database_file: str
    days: float = 0

    def set(self, server: float, database: float) -> None:
        """Turns both; returns when a server answers that has known no others."""
        wind(self.server_file, int(server * DAY))
        wind(self.database_file, int(database * DAY))
        self.server.restart(faked(self.server_file))
        wait_until(300, self.answers, "the server to answer")

    def answers(self) -> bool:
        try:
            connection = BlockingConnection(self.target, patience=20)
            reply = connection.exchange(request("GET", "/v1/health/ready"))
            connection.close()
        except Exception:  # it is on its way
            return False
        if reply.status != 200:
            return False
        self.days = (parsedate_to_datetime(reply.fields["date"]).timestamp() - time()) / DAY
        return True


@dataclass
class Age:
    """The age of a device's store, in days."""

    days: float = 0
    last: float | None = None
    #: What it was when it grew for the first time: since then the vault's content ages, and the folder's since the beginning.
    first: float | None = None

    def read(self, device: float, server: float) -> None:
        """A sync has succeeded, with these days on the two clocks."""
        if abs(device - server) > 1:
            return
        if self.last is not None and device != self.last:
            self.days += min(max(device - self.last, 0), STEP_DAYS)
        if self.first is None and self.days > 0:
            self.first = self.days
        self.last = device

    @property
    def is_folder_due(self) -> bool:
        return self.days >= KEPT_DAYS

    @property
    def is_vault_due(self) -> bool:
        return self.first is not None and self.days >= self.first + KEPT_DAYS


class Story:
    """A phone whose clock is wrong now and then, and what it keeps for a while."""

    def __init__(self, town: Town, clocks: Clocks):
        self.household = Household(town, "clocks")
        self.clocks = clocks
        self.age = Age()
        self.written = 0
        self.phone = self.household.arrive("phone")
        self.laptop = self.household.arrive("laptop")
        self._keep_something()
        self.kept = self._kept()
        self.expect(self.kept == KEPT, f"kept to begin with: {self.kept}")

    def expect(self, holds: bool, text: str) -> None:
        self.household.expect(holds, text)

    def _keep_something(self) -> None:
        """A deleted item, a replaced version, and in the folder's trash a deleted file and a replaced one."""
        phone, laptop = self.phone, self.laptop
        for name in ("deleted", "replaced", "stays"):
            (phone.folder / name).write_text(f"{name}\n")
            done(phone.run("put", "--title", f"note {name}", "--json", given=f"{name}\n".encode()), 0)
        self._sync(phone)
        self._sync(laptop)
        (laptop.folder / "deleted").unlink()
        (laptop.folder / "replaced").write_text("another content\n")
        self._sync(laptop)
        done(phone.run("delete", "note deleted", "--json"), 0)
        done(phone.run("put", "--item", "note replaced", "--json", given=b"another content\n"), 0)
        # From this sync on it ages.
        self._sync(phone)
        self.age.read(0, 0)

    def _sync(self, device: Device) -> None:
        done(device.run("sync", str(device.folder), "--json", limit=PATIENCE))

    def _kept(self) -> dict[str, int]:
        phone = self.phone
        trash = done(phone.run("trash", str(phone.folder), "--json")).json["files"]
        files = [path for path in (phone.folder / ".saltern" / "trash").iterdir() if path.is_file()]
        self.expect(len(files) == len(trash), f"{len(files)} files in the trash, {len(trash)} in its list")
        return {
            "trash": len(trash),
            "deleted": len(done(phone.run("list", "--deleted", "--json")).json["items"]),
            "versions": len(done(phone.run("versions", "note replaced", "--local", "--json")).json["versions"]),
        }

    def tell(self, what: str) -> None:
        self.household.town.say(f"    clocks: {what}")

    def sync(self, what: str, clock: str = "", days: float | None = 0, *, statuses: dict[int, str | None]) -> None:
        """Writes something, and syncs by a clock of so many days; None for one that nobody can follow."""
        self.written += 1
        name = f"written-{self.written}"
        (self.phone.folder / name).write_text(f"{name}\n")
        done(self.phone.run("put", "--title", f"note {name}", "--json", given=f"{name}\n".encode(), clock=clock, limit=PATIENCE), 0)
        for words in (["sync"], ["sync", str(self.phone.folder)]):
            outcome = self.phone.run(*words, "--json", clock=clock, limit=PATIENCE)
            self._judge(what, outcome, statuses)
            if outcome.status == 0 and days is not None:
                self.age.read(days, self.clocks.days)
        self._look(what)

    def _judge(self, what: str, outcome: Outcome, statuses: dict[int, str | None]) -> None:
        code = outcome.code if outcome.status else None
        holds = outcome.status in statuses and statuses[outcome.status] == code
        self.expect(holds, f"{what}: {outcome}, and not one of {statuses}")
        self.tell(f"{what}: {outcome.words[0]} ended with {outcome.status}{f' {code}' if code else ''}")

    def _look(self, what: str) -> None:
        """What is kept is there until it is due, and not longer."""
        kept, right = self._kept(), dict(KEPT)
        if self.age.is_folder_due:
            right["trash"] = 0
        if self.age.is_vault_due:
            right |= {"deleted": 0, "versions": 0}
        self.expect(kept == right, f"{what}, at an age of {self.age.days:.0f} days: {kept}, and not {right}")

    def recover(self, what: str) -> None:
        """The clocks are right again: a sync does it, at most after a log-in."""
        if self.phone.run("sync", "--json", limit=PATIENCE).status == 77:
            done(self.household.log_in("phone"))
        self.sync(f"{what}, and back", statuses={0: None})

    def arrivals(self) -> None:
        """The other device has everything."""
        if self.laptop.run("sync", "--json", limit=PATIENCE).status == 77:
            done(self.household.log_in("laptop"))
        self._sync(self.laptop)
        self.household.same_files(self.phone, self.laptop)
        titles = {item["title"] for item in done(self.laptop.run("list", "--json")).json["items"]}
        lost = {f"note written-{number + 1}" for number in range(self.written)} - titles
        self.expect(not lost, f"another device lacks {sorted(lost)}")


KEPT = {"trash": 2, "deleted": 2, "versions": 1}
RIGHT: dict[int, str | None] = {0: None}
EXPIRED: dict[int, str | None] = {76: "untrusted_certificate"}
ENDED: dict[int, str | None] = {77: "session_ended"}


def scenes(story: Story) -> list[tuple[str, Callable[[], None]]]:
    """What happens to the clocks."""

    def device(clock: str, days: float | None, statuses: dict[int, str | None]) -> Callable[[], None]:
        return lambda: story.sync(f"the phone at {clock}", clock, days, statuses=statuses)

    def server(own: float, database: float, clock: str, days: float, statuses: dict[int, str | None]) -> Callable[[], None]:
        def happen() -> None:
            story.clocks.set(own, database)
            what = f"the server at {own:+.0f} days, its database at {database:+.0f}, the phone at {days:+.0f}"
            story.sync(what, clock, days, statuses=statuses)
            story.clocks.set(0, 0)

        return happen

    return [
        ("ahead", device("+40d", 40, RIGHT)),
        ("behind", device("-40d", -40, RIGHT)),
        ("years", device("+3650d", 3650, EXPIRED)),
        # A day in a second: where it is by the end of a command depends on the machine, so nothing is inferred.
        ("quick", device("+2d x86400", None, RIGHT)),
        ("slow", device("-2d x0.2", None, RIGHT)),
        ("server-ahead", server(40, 0, "", 0, RIGHT)),
        ("server-behind", server(-40, 0, "", 0, RIGHT)),
        ("database-ahead", server(0, 60, "", 0, ENDED)),
        ("both-behind", server(-40, -40, "", 0, RIGHT)),
        # Confirmed by the server, and yet one reading.
        ("world-ahead", server(20, 20, "+20d", 20, RIGHT)),
    ]


def clocks(town: Town, turned: Clocks) -> Household:
    turned.set(0, 0)
    story = Story(town, turned)
    chosen = scenes(story)
    story.household.dice.shuffle(chosen)
    for name, happen in chosen:
        happen()
        story.recover(name)
    story.arrivals()
    days = 0.0
    while not story.age.is_vault_due and days < 60:
        days += 6.3
        turned.set(days, days)
        story.sync("later", f"+{int(days * DAY)}s", days, statuses=RIGHT)
    story.expect(story.age.is_vault_due, f"the store's age is {story.age.days:.0f} days after {days:.0f}")
    return story.household
