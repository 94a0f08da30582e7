"""What a person does while a server lies, and what has to be so afterwards."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from traffic.device import DOCUMENTED, SILENT, Device, Outcome, snapshot
from traffic.relay import Honesty, Lie, Relay, Request

#: More than saltern-client has in memory, whatever a server sends.
MOST_KILOBYTES = 256 << 10
#: Real seconds for a busy machine, on top of what a lie's clocks allow: only a command that hangs takes so long.
SLACK = 600
#: The only calls that may have a password key in them.
PROVING = ("/v1/sessions", "/v1/accounts", "/v1/account", "/v1/rotations")
WORD = "correct horse battery staple"
OTHER_WORD = "a staple for every battery"
FILE_BYTES = 700_000


@dataclass
class Verdict:
    """What has become of one lie."""

    lie: Lie
    complaints: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def __str__(self) -> str:
        statuses = " ".join(str(outcome.status) for outcome in self.outcomes)
        longest = max((outcome.seconds for outcome in self.outcomes), default=0)
        greatest = max((outcome.kilobytes for outcome in self.outcomes), default=0) / 1024
        result = "; ".join(self.complaints) or "held"
        return f"{longest:6.1f} s{greatest:5.0f} MB  {statuses[:60]:24}  {result}"


class Journey:
    """One account at a time, with a device that is lied to."""

    def __init__(self, client: str, relay: Relay, work: Path, hurry_library: str, pin: str):
        self.client = client
        self.relay = relay
        self.work = work
        self.hurry_library = hurry_library
        self.pin = pin
        self.words = work / "words"
        self.words.mkdir(mode=0o700, parents=True)
        for name, text in (("password", WORD), ("other", OTHER_WORD)):
            (self.words / name).write_text(text + "\n")
            (self.words / name).chmod(0o600)
        self.outside = work / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("outside\n")
        self.slack = SLACK
        self.phone: Device | None = None

    # MARK: An account

    def device(self, name: str) -> Device:
        return Device(self.client, self.work / name, self.hurry_library)

    def contact(self, userid: str, name: str, port: int) -> list[str]:
        return [
            "--server", f"https://localhost:{port}", "--userid", userid, "--pin", self.pin, "--certificate",
            self.relay.certificate, "--device", name, "--password-file", str(self.words / "password"), "--json",
        ]  # fmt: skip

    def done(self, outcome: Outcome, *statuses: int) -> Outcome:
        if outcome.status not in (statuses or (0,)):
            raise RuntimeError(f"without a lie, {outcome}")
        return outcome

    def begin(self) -> None:
        """A new account, with items, files and an unsent edit; its device can be taken back to this."""
        self.end()
        self.relay.lie = Honesty()
        self.userid = f"ada-{secrets.token_hex(6)}@example.org"
        self.phone = phone = self.device("phone")
        self.done(phone.run("register", *self.contact(self.userid, "phone", self.relay.port)))
        self.texts = {}
        for name in ("one", "two", "three"):
            self.put(name)
        (phone.folder / "long").write_bytes(secrets.token_bytes(FILE_BYTES))
        (phone.folder / "inner").mkdir()
        (phone.folder / "inner" / "short").write_text("short\n")
        self.done(phone.run("sync", "--json"))
        self.done(phone.run("sync", str(phone.folder), "--json"))
        shared = self.done(phone.run("share", "one", "--views", "100", "--json")).json
        (self.words / "link").write_text(shared["url"] + "\n")
        (self.words / "link").chmod(0o600)
        phone.keep()
        self.kept_texts = dict(self.texts)
        self.sent_texts = dict(self.texts)
        # What the password is stretched to, and what must never leave the device.
        both = hashlib.pbkdf2_hmac("sha256", WORD.encode(), f"localhost.saltern:{self.userid}".encode(), 600_000, 64)
        self.password_key, unlock_key = both[:32], both[32:]
        self.secrets = [WORD.encode(), OTHER_WORD.encode()]
        for key in (unlock_key, both):
            self.secrets += [key, key.hex().encode(), base64.b64encode(key)]

    def end(self) -> None:
        """Removes the device; the next lie begins with another account."""
        if self.phone is None:
            return
        self.relay.lie = Honesty()
        self.phone.remove()
        self.phone = None

    def put(self, title: str, *words: str) -> None:
        text = f"{title} {secrets.token_hex(8)}"
        assert self.phone is not None
        self.done(self.phone.run("put", "--title", title, *words, "--json", given=text.encode()))
        self.texts[title] = text

    # MARK: A lie

    def judge(self, lie: Lie) -> Verdict:
        verdict = Verdict(lie)
        if self.phone is None:
            self.begin()
        phone = self.phone
        assert phone is not None
        phone.reset()
        self.texts = dict(self.kept_texts)
        self.relay.lie = Honesty()
        title = f"{lie.name}-{secrets.token_hex(4)}"
        self.put(title)
        self.put(f"{title}-second")
        (phone.folder / f"{lie.name}.txt").write_text(f"{title}\n")
        before = snapshot(self.outside)
        self.relay.take_requests()
        self.relay.lie = lie
        for command in lie.commands:
            outcome = self.carry_out(command, lie, title)
            verdict.outcomes.append(outcome)
            complaint = self.complaint(outcome, lie)
            if complaint and complaint not in verdict.complaints:
                verdict.complaints.append(complaint)
        self.relay.lie = Honesty()
        requests = self.relay.take_requests()
        verdict.complaints += filter(None, [lie.objection(requests), self.leak(requests)])
        # On a busy machine the client's hurried clocks may end a command before it gets there.
        statuses = {outcome.status for outcome in verdict.outcomes}
        if 69 not in statuses and (not lie.count or lie.is_to_be_noticed and not lie.told):
            verdict.complaints.append("the client did not ask what it lies about")
        if lie.told and not statuses & {69, 76}:
            verdict.complaints.append("the lie was not noticed")
        if snapshot(self.outside) != before:
            verdict.complaints.append("something outside of the folder is another than before")
        verdict.complaints += self.losses(phone, f"{lie.name}.txt")
        self.sent_texts |= self.texts
        if lie.is_spending:
            verdict.complaints += self.arrivals()
            self.end()
        return verdict

    def carry_out(self, command: str, lie: Lie, title: str) -> Outcome:
        """A command of the device, or of another one; `title` is that of the first item that was written for this lie."""
        assert self.phone is not None
        phone, link = self.phone, str(self.words / "link")
        known = self.contact(self.userid, "phone", self.relay.port)
        password = ["--password-file", str(self.words / "password"), "--json"]
        limit = lie.patience / lie.hurry + self.slack
        if command in ("login", "arrive", "register", "register-known"):
            return self.elsewhere(command, lie, limit)
        if command == "edit":
            self.texts[title] = f"{title} {secrets.token_hex(8)}"
            return phone.run("put", "--item", title, "--json", given=self.texts[title].encode())
        if command == "delete":
            del self.texts[title]
            return phone.run("delete", title, "--json")
        words = {
            "sync": ["sync", "--json"],
            "folder": ["sync", str(phone.folder), "--json"],
            "watch": ["sync", str(phone.folder), "--watch", "--json"],
            "again": ["login", *known],
            "events": ["events", "--limit", "20", "--json"],
            "shares": ["shares", "--json"],
            "devices": ["devices", "--json"],
            "share": ["share", "two", "--json"],
            "open": ["open", "--link-file", link, "--json"],
            "rotate": ["rotate", *password],
            "password": ["password", "--new-password-file", str(self.words / "other"), *password],
        }[command]
        interrupt = self.after_lie(lie) if command == "watch" else None
        return phone.run(*words, hurry=lie.hurry, limit=limit, interrupt=interrupt)

    def after_lie(self, lie: Lie) -> Callable[[], bool]:
        """True three seconds after the lie was told for the first time."""
        first: list[float] = []

        def is_time() -> bool:
            if lie.count and not first:
                first.append(time.monotonic())
            return bool(first) and time.monotonic() > first[0] + 3

        return is_time

    def elsewhere(self, command: str, lie: Lie, limit: float) -> Outcome:
        """A command of a device that was not here before."""
        other = self.device("laptop")
        try:
            userid = self.userid
            if command == "arrive":
                self.relay.lie = Honesty()
                self.done(other.run("login", *self.contact(userid, "laptop", self.relay.port)), 0, 2)
                self.relay.lie = lie
                return other.run("sync", str(other.folder), "--json", hurry=lie.hurry, limit=limit)
            if command == "register":
                userid = f"eve-{secrets.token_hex(4)}@example.org"
            words = "login" if command == "login" else "register"
            if command == "register-known":
                return other.run("login", *self.contact(userid, "laptop", self.relay.port), limit=limit)
            return other.run(words, *self.contact(userid, "laptop", self.relay.port), hurry=lie.hurry, limit=limit)
        finally:
            other.remove()

    def complaint(self, outcome: Outcome, lie: Lie) -> str | None:
        """What is not right with the end of one command."""
        words = " ".join(outcome.words[:1])
        if outcome.status is None:
            return f"{words} did not end"
        if outcome.status < 0:
            return f"{words} was ended by signal {-outcome.status}: {outcome.errors[-300:]}"
        if "watch" in outcome.words[-2]:
            return None if outcome.status in (*DOCUMENTED, 130) else f"watch ended with {outcome.status}"
        allowed = lie.statuses or DOCUMENTED
        if outcome.status not in allowed:
            return f"{words} ended with {outcome.status}, {outcome.code}"
        if outcome.status not in SILENT and not outcome.code:
            return f"{words} ended with {outcome.status} and no error object: {outcome.errors[-200:]}"
        if "\x1b" in outcome.errors + outcome.output:
            return f"{words} wrote escape sequences"
        if outcome.kilobytes > MOST_KILOBYTES:
            return f"{words} had {outcome.kilobytes >> 10} MB"
        return None

    def leak(self, requests: list[Request]) -> str | None:
        """A secret in what the server was sent."""
        for request in requests:
            sent = request.target.encode() + b"\n".join(
                f"{name}: {value}".encode() for name, value in request.fields.items()
            )
            sent += request.body
            words = [*self.secrets, *(text.encode() for text in self.texts.values())]
            if any(word in sent for word in words):
                return f"a secret is in {request.call}"
            if base64.b64encode(self.password_key) in sent and not request.path.startswith(PROVING):
                return f"the password key is in {request.call}"
        return None

    # MARK: Afterwards

    def losses(self, phone: Device, file: str) -> list[str]:
        """What is missing once the server is honest again."""
        complaints = []
        first = phone.run("sync", "--json")
        if first.status == 76:
            # What was acknowledged last may be noticed as a lie now; then it is sent again.
            first = phone.run("sync", "--json")
        if first.status == 77:
            entered = phone.run("login", *self.contact(self.userid, "phone", self.relay.port))
            if entered.status not in (0, 2):
                complaints.append(f"afterwards {entered}")
            first = phone.run("sync", "--json")
        for outcome in (first, phone.run("sync", str(phone.folder), "--json")):
            if outcome.status not in (0, 2):
                complaints.append(f"afterwards {outcome}")
        complaints += self.lacks(phone, self.texts, "lost here")
        if not (phone.folder / file).is_file():
            complaints.append(f"the file {file} is gone")
        return complaints

    def arrivals(self) -> list[str]:
        """What a new device of the account lacks after all its lies."""
        self.relay.lie = Honesty()
        laptop = self.device("laptop")
        try:
            self.done(laptop.run("login", *self.contact(self.userid, "laptop", self.relay.port)), 0, 2)
            self.done(laptop.run("sync", "--json"), 0, 2)
            self.done(laptop.run("sync", str(laptop.folder), "--json"), 0, 2)
            return self.lacks(laptop, self.sent_texts, "another device lacks")
        finally:
            laptop.remove()

    def lacks(self, device: Device, texts: dict[str, str], words: str) -> list[str]:
        """Items and files that are not on a device as they were."""
        export = device.home / "export.ndjson"
        written = device.run("export", str(export), "--json")
        if written.status not in (0, 2):
            return [f"afterwards {written}"]
        found = {line.get("text", "") for line in map(json.loads, export.read_text().splitlines())}
        lost = [title for title, text in texts.items() if text not in found]
        complaints = [f"{words}: {', '.join(lost)}"] if lost else []
        kept = self.work / "phone.kept" / "files"
        for name in ("long", "inner/short"):
            path = device.folder / name
            if not path.is_file() or path.read_bytes() != (kept / name).read_bytes():
                complaints.append(f"{words}: the file {name} as it was")
        return complaints

