"""A person with devices: phone and laptop run saltern-client, over lines of their own, against one server."""

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from traffic.database import Database
from traffic.device import Device, Outcome
from traffic.line import Line, LineClock

#: Against hanging alone.
PATIENCE = 600.0
#: A command is done, or has notices.
DONE = (0, 2)


@dataclass
class Town:
    """What all households have in common."""

    client: str
    work: Path
    certificate: str
    pin: str
    port: int
    superuser: Database
    hurry_library: str
    seed: int
    say: Callable[[str], None]


class Household:
    """One account. `complaints` collects what is wrong."""

    def __init__(self, town: Town, name: str):
        self.town = town
        self.name = name
        self.dice = random.Random(f"{town.seed} {name}")
        self.home = town.work / name
        self.home.mkdir()
        self.userid = f"{name}-{secrets.token_hex(6)}@example.org"
        self.password = self.home / "password"
        self.password.write_text("correct horse battery staple\n")
        self.password.chmod(0o600)
        self.complaints: list[str] = []
        self.devices: dict[str, Device] = {}
        self.ports: dict[str, int] = {}

    def expect(self, holds: bool, text: str) -> None:
        if not holds:
            self.complaints.append(f"{self.name}: {text}")

    def line(self, name: str) -> Line:
        clock = LineClock(self.home / f"{name}.ahead")
        return Line(self.town.port, clock).start()

    def arrive(self, name: str, line: Line | None = None) -> Device:
        """A device of the account; the first one registers it."""
        device = Device(self.town.client, self.home / name, self.town.hurry_library)
        if line is not None and line.clock:
            device.ahead = str(line.clock.file)
        self.ports[name] = line.port if line else self.town.port
        done(device.run("login" if self.devices else "register", *self._contact(name), limit=PATIENCE))
        self.devices[name] = device
        return device

    def log_in(self, name: str) -> Outcome:
        return self.devices[name].run("login", *self._contact(name), limit=PATIENCE)

    def _contact(self, name: str) -> list[str]:
        return [
            "--server", f"https://localhost:{self.ports[name]}", "--userid", self.userid, "--pin", self.town.pin,
            "--certificate", self.town.certificate, "--device", name, "--password-file", str(self.password), "--json",
        ]  # fmt: skip

    def stored_bytes(self) -> int:
        """The sealed bytes that the server has."""
        return self.town.superuser.number(
            f"SELECT item_bytes FROM saltern.accounts WHERE userid = '{self.userid}'"
        )

    def photos(self, folder: Path, count: int, size: int) -> int:
        """Makes files of random bytes. Their bytes in all."""
        folder.mkdir(exist_ok=True)
        for _ in range(count):
            (folder / f"photo-{secrets.token_hex(6)}.jpg").write_bytes(secrets.token_bytes(size))
        return count * size

    def same_files(self, one: Device, other: Device) -> None:
        """Complains of visible files that the other device does not have as they are."""
        for path in one.folder.iterdir():
            if path.is_file() and not path.name.startswith("."):
                twin = other.folder / path.name
                same = twin.is_file() and twin.read_bytes() == path.read_bytes()
                self.expect(same, f"another device lacks {path.name} as it was")


def done(outcome: Outcome, *statuses: int) -> Outcome:
    """What has to succeed, because nothing is broken."""
    if outcome.status not in (statuses or DONE):
        raise RuntimeError(f"with nothing broken, {outcome}")
    return outcome
