"""Replies in the right form that would have the client use other keys, or give a password away."""

from typing import Any, ClassVar

from kinds import Fixed, Restated
from traffic.relay import Exchange, Lie, Reply, Request, with_json

REFUSED = frozenset([76])
SERVICE = "* /v1/service"
LOGIN = "POST /v1/sessions"


class Stretching(Restated):
    """Changes what a password is to be stretched with."""

    calls = ("* /v1/kdf",)
    commands = ("again", "login")
    statuses = REFUSED
    forbidden = frozenset([LOGIN])
    members: ClassVar[dict[str, Any]]

    def restated(self, request: Request, value: Any) -> Any:
        return {**value, **self.members}


def stretching(name: str, says: str, **members: Any) -> Lie:
    kind = type(name, (Stretching,), {"name": name, "says": says, "members": members})
    lie: Lie = kind()
    return lie


def stretching_lies() -> list[Lie]:
    return [
        stretching("kdf-giant", "2^62 iterations", iterations=2**62),
        stretching("kdf-many", "ten million and one iterations", iterations=10_000_001),
        stretching("kdf-few", "599,999 iterations", iterations=599_999),
        stretching("kdf-one", "one iteration", iterations=1),
        stretching("kdf-none", "no iterations", iterations=0),
        stretching("kdf-negative", "-600,000 iterations", iterations=-600_000),
        stretching("kdf-fraction", "600,000.5 iterations", iterations=600_000.5),
        stretching("kdf-algorithm", "PBKDF2 with SHA-1", algorithm="PBKDF2-HMAC-SHA1"),
        stretching("kdf-prefix", "another salt prefix", saltPrefix="evil.example:"),
        stretching("kdf-salt", "a salt that is not made of the userid", salt="localhost.saltern:eve"),
        stretching("kdf-empty", "no salt", salt="", saltPrefix=""),
        stretching("kdf-length", "a key of 64 bytes, which would be the unlock key, too", keyLength=64),
    ]


class ServicePrefix(Restated):
    name = "service-prefix"
    says = "another salt prefix for new accounts and log-ins of known ones"
    calls = (SERVICE,)
    commands = ("register-known", "again")
    forbidden = frozenset(["POST /v1/accounts"])

    def restated(self, request: Request, value: Any) -> Any:
        return {**value, "saltPrefix": "evil.example:"}


class ServiceIterations(Restated):
    name = "service-iterations"
    says = "2^62 iterations for new accounts"
    calls = (SERVICE,)
    commands = ("register",)
    statuses = frozenset([0, 76])

    def restated(self, request: Request, value: Any) -> Any:
        limits = {"iterations": 2**62, "minimumIterations": 2**62, "maximumIterations": 2**62}
        return {**value, "kdf": {**value["kdf"], **limits}}


class ServicePins(Restated):
    name = "service-pins"
    says = "a thousand pins, malformed ones and long ones, as its own"
    calls = (SERVICE,)
    commands = ("sync", "folder", "again")

    def restated(self, request: Request, value: Any) -> Any:
        pins = ["sha256//" + "A" * 43 + "=", "sha256//x", "", "\r\nx", ";sha256//" + "B" * 43 + "=", "x" * 100_000]
        return {**value, "pins": {"active": pins * 200, "backup": pins}}


class Keyring(Restated):
    """Changes the keyring, at log-in and when it is asked for."""

    calls = (LOGIN, "GET /v1/account/keyring")


class OldKeyring(Keyring):
    """Shows the keyring of before the last change to a device that has seen the later one."""

    name = "old-keyring"
    says = "the keyring of before a rotation, at log-in, and when it is asked for, with a later revision"
    commands = ("rotate", "again", "sync", "folder")
    is_spending = True
    first: str | None = None

    def restated(self, request: Request, value: Any) -> Any:
        if self.first is None:
            self.first = value["keyring"]
            return value
        name = "revision" if "revision" in value else "keyringRevision"
        return {**value, "keyring": self.first, name: value[name] + 1}


class NoKeyring(Keyring):
    name = "no-keyring"
    says = "no keyring, an empty one, or 100 kB of zeros"
    commands = ("again", "sync", "login", "again", "login")
    hurry = 8

    def restated(self, request: Request, value: Any) -> Any:
        keyring = self.in_turn(["", "AAAA" * 30_000, None])
        others = {name: member for name, member in value.items() if name != "keyring"}
        return others if keyring is None else {**others, "keyring": keyring}


class OddTokens(Restated):
    name = "odd-tokens"
    says = "tokens with line ends, empty ones, and long ones: they go into the head of each request"
    calls = (LOGIN,)
    commands = ("again", "login", "again", "login", "again")
    hurry = 8

    def restated(self, request: Request, value: Any) -> Any:
        token = self.in_turn(["x\r\nEvil: yes", "", "x" * 100_000, "\u00e9\u0000", 'x" '])
        return {**value, "session": {**value["session"], "token": token}, "deviceToken": token}

    def objection(self, requests: list[Request]) -> str | None:
        if any("evil" in request.fields for request in requests):
            return "it sent a field of the server's"
        return super().objection(requests)


class HalfRotated(Lie):
    name = "half-rotated"
    says = "a rotation of which the last step is never answered"
    calls = ("* */commit",)
    commands = ("rotate", "sync", "folder")
    hurry = 8
    is_spending = True

    async def lie(self, exchange: Exchange) -> None:
        await exchange.forward()
        exchange.end()


class FalseRotation(Fixed):
    name = "false-rotation"
    says = "a rotation that is acknowledged and was not carried out"
    calls = ("* */commit",)
    commands = ("rotate", "sync", "folder")
    is_spending = True
    reply = with_json(
        Reply(200),
        {"items": 1, "dropped": 0, "revision": 10**6, "sessionsEnded": 0, "currentSessionEnded": False,
         "keyringRevision": 7},
    )  # fmt: skip


class FalsePassword(Fixed):
    name = "false-password"
    says = "a change of the password that is acknowledged and was not carried out"
    calls = ("PUT /v1/account/credential",)
    commands = ("password", "sync", "folder")
    is_spending = True
    reply = with_json(
        Reply(200),
        {"kdf": {"iterations": 600_000}, "sessionsEnded": 0, "currentSessionEnded": False, "keyringRevision": 2},
    )  # fmt: skip


class RaisedAgain(Restated):
    name = "raised-again"
    says = "each log-in asks for more iterations"
    calls = (LOGIN, SERVICE)
    commands = ("again", "again", "login")
    statuses = frozenset([0, 2])
    is_spending = True

    def restated(self, request: Request, value: Any) -> Any:
        if request.call == LOGIN:
            return {**value, "kdfUpgradeRequired": True}
        return {**value, "kdf": {**value["kdf"], "iterations": 2**40}}


class OddShares(Lie):
    name = "odd-shares"
    says = "a share of 10 million and one iterations, an unknown format, and one that is not there"
    calls = ("GET /v1/shares/*",)
    commands = ("open",) * 4
    statuses = frozenset([65, 66, 76])
    hurry = 8

    async def lie(self, exchange: Exchange) -> None:
        content = {"format": "aes-256-gcm", "salt": "AAAAAAAAAAAAAAAAAAAAAA==", "iterations": 1, "sealed": "AAAA" * 20}
        others: list[dict[str, Any]] = [
            {"iterations": 10_000_001},
            {"iterations": -1},
            {"format": "\x1b[2J"},
            {"sealed": ""},
        ]
        await exchange.send(with_json(Reply(200), {**content, **self.in_turn(others)}))


class ShareElsewhere(Restated):
    name = "share-elsewhere"
    says = "a new share gets an id and a path that lead to another server"
    calls = ("POST /v1/shares",)
    commands = ("share",)
    statuses = frozenset([0, 76])

    def restated(self, request: Request, value: Any) -> Any:
        return {**value, "id": "../../@evil.example/s/x", "path": "@evil.example/s/x"}


class EndlessShares(Lie):
    name = "endless-shares"
    says = "always another page of shares and of events"
    calls = ("GET /v1/shares", "GET /v1/account/events")
    commands = ("shares", "events")

    async def lie(self, exchange: Exchange) -> None:
        request = exchange.request
        first = Request(request.method, request.path, request.fields, request.body)
        reply = await Exchange(first, exchange.reader, exchange.writer, exchange.origin).forward()
        await exchange.send(with_json(reply, {**reply.json, "nextPage": f"x{self.count}"}))


def trust_lies() -> list[Lie]:
    plain = [
        ServicePrefix, ServiceIterations, ServicePins, NoKeyring, OddTokens, OddShares, ShareElsewhere, EndlessShares,
        OldKeyring, HalfRotated, FalseRotation, FalsePassword, RaisedAgain,
    ]  # fmt: skip
    return [*stretching_lies(), *(kind() for kind in plain)]
