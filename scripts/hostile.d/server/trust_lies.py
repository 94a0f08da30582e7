"""Replies in the right form that would have the client use other keys, or give a password away."""

import json
from typing import Any

from traffic.relay import Exchange, Lie, Reply, Request, with_json

REFUSED = frozenset([76])


class Stretching(Lie):
    """Changes what a password is to be stretched with."""

    commands = ("again", "login")
    statuses = REFUSED
    forbidden = frozenset(["POST /v1/sessions"])
    members: dict[str, Any]

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.path != "/v1/kdf":
            return reply
        return with_json(reply, {**json.loads(reply.body), **self.members})


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


class ServicePrefix(Lie):
    name = "service-prefix"
    says = "another salt prefix for new accounts and log-ins of known ones"
    commands = ("register-known", "again")
    forbidden = frozenset(["POST /v1/accounts"])

    def change(self, request: Request, reply: Reply) -> Reply:
        value = json.loads(reply.body) if reply.body else {}
        if request.path != "/v1/service":
            return reply
        return with_json(reply, {**value, "saltPrefix": "evil.example:"})


class ServiceIterations(Lie):
    name = "service-iterations"
    says = "2^62 iterations for new accounts"
    commands = ("register",)
    statuses = frozenset([0, 76])

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.path != "/v1/service":
            return reply
        value = json.loads(reply.body)
        value["kdf"] = {**value["kdf"], "iterations": 2**62, "minimumIterations": 2**62, "maximumIterations": 2**62}
        return with_json(reply, value)


class ServicePins(Lie):
    name = "service-pins"
    says = "a thousand pins, malformed ones and long ones, as its own"
    commands = ("sync", "folder", "again")

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.path != "/v1/service":
            return reply
        pins = ["sha256//" + "A" * 43 + "=", "sha256//x", "", "\r\nx", ";sha256//" + "B" * 43 + "=", "x" * 100_000]
        return with_json(reply, {**json.loads(reply.body), "pins": {"active": pins * 200, "backup": pins}})


class OldKeyring(Lie):
    """Shows the keyring of before the last change to a device that has seen the later one."""

    name = "old-keyring"
    says = "the keyring of before a rotation, at log-in, and when it is asked for, with a later revision"
    commands = ("rotate", "again", "sync", "folder")
    is_spending = True

    def __init__(self) -> None:
        self.first: str | None = None

    def change(self, request: Request, reply: Reply) -> Reply:
        if reply.status >= 300 or request.call not in ("POST /v1/sessions", "GET /v1/account/keyring"):
            return reply
        value = json.loads(reply.body)
        if self.first is None:
            self.first = value["keyring"]
            return reply
        name = "revision" if "revision" in value else "keyringRevision"
        return with_json(reply, {**value, "keyring": self.first, name: value[name] + 1})


class NoKeyring(Lie):
    name = "no-keyring"
    says = "no keyring, an empty one, or 100 kB of zeros"
    commands = ("again", "sync", "login", "again", "login")
    hurry = 20

    def __init__(self) -> None:
        self.count = 0

    def change(self, request: Request, reply: Reply) -> Reply:
        if reply.status >= 300 or request.call not in ("POST /v1/sessions", "GET /v1/account/keyring"):
            return reply
        value = json.loads(reply.body)
        self.count += 1
        if self.count % 3 == 0:
            del value["keyring"]
        else:
            value["keyring"] = "" if self.count % 3 == 1 else "AAAA" * 30_000
        return with_json(reply, value)


class OddTokens(Lie):
    name = "odd-tokens"
    says = "tokens with line ends, empty ones, and long ones: they go into the head of each request"
    commands = ("again", "login", "again", "login", "again")
    hurry = 20

    def __init__(self) -> None:
        self.count = 0

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.call != "POST /v1/sessions" or reply.status >= 300:
            return reply
        value = json.loads(reply.body)
        texts = ["x\r\nEvil: yes", "", "x" * 100_000, "\u00e9\u0000", 'x" ']
        value["session"]["token"] = value["deviceToken"] = texts[self.count % len(texts)]
        self.count += 1
        return with_json(reply, value)

    def objection(self, requests: list[Request]) -> str | None:
        if any("evil" in request.fields for request in requests):
            return "it sent a field of the server's"
        return super().objection(requests)


class HalfRotated(Lie):
    name = "half-rotated"
    says = "a rotation of which the last step is never answered"
    commands = ("rotate", "sync", "folder")
    hurry = 20
    is_spending = True

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path.endswith("/commit"):
            await exchange.forward()
            return exchange.end()
        await super().answer(exchange)


class FalseRotation(Lie):
    name = "false-rotation"
    says = "a rotation that is acknowledged and was not carried out"
    commands = ("rotate", "sync", "folder")
    hurry = 20
    is_spending = True

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path.endswith("/commit"):
            value = {"items": 1, "dropped": 0, "revision": 10**6, "sessionsEnded": 0, "currentSessionEnded": False,
                     "keyringRevision": 7}  # fmt: skip
            return await exchange.send(Reply(200, {}, json.dumps(value).encode()))
        await super().answer(exchange)


class FalsePassword(Lie):
    name = "false-password"
    says = "a change of the password that is acknowledged and was not carried out"
    commands = ("password", "sync", "folder")
    hurry = 20
    is_spending = True

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.call == "PUT /v1/account/credential":
            value = {"kdf": {"iterations": 600_000}, "sessionsEnded": 0, "currentSessionEnded": False,
                     "keyringRevision": 2}  # fmt: skip
            return await exchange.send(Reply(200, {}, json.dumps(value).encode()))
        await super().answer(exchange)


class RaisedAgain(Lie):
    name = "raised-again"
    says = "each log-in asks for more iterations"
    commands = ("again", "again", "login")
    statuses = frozenset([0, 2])
    is_spending = True

    def change(self, request: Request, reply: Reply) -> Reply:
        value = json.loads(reply.body) if reply.body and reply.status < 300 else {}
        if request.call == "POST /v1/sessions" and value:
            return with_json(reply, {**value, "kdfUpgradeRequired": True})
        if request.path == "/v1/service":
            return with_json(reply, {**value, "kdf": {**value["kdf"], "iterations": 2**40}})
        return reply


class OddShares(Lie):
    name = "odd-shares"
    says = "a share of 10 million and one iterations, an unknown format, and one that is not there"
    commands = ("open",) * 4
    statuses = frozenset([65, 66, 76])
    hurry = 20

    def __init__(self) -> None:
        self.count = 0

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.method != "GET" or not request.path.startswith("/v1/shares/"):
            return reply
        self.count += 1
        content = {"format": "aes-256-gcm", "salt": "AAAAAAAAAAAAAAAAAAAAAA==", "iterations": 1, "sealed": "AAAA" * 20}
        others: list[dict[str, Any]] = [
            {"iterations": 10_000_001},
            {"iterations": -1},
            {"format": "\x1b[2J"},
            {"sealed": ""},
        ]
        return with_json(Reply(200), {**content, **others[self.count % 4]})


class ShareElsewhere(Lie):
    name = "share-elsewhere"
    says = "a new share gets an id and a path that lead to another server"
    commands = ("share",)
    statuses = frozenset([0, 76])

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.call != "POST /v1/shares" or reply.status >= 300:
            return reply
        value = {**json.loads(reply.body), "id": "../../@evil.example/s/x", "path": "@evil.example/s/x"}
        return with_json(reply, value)


class EndlessShares(Lie):
    name = "endless-shares"
    says = "always another page of shares and of events"
    commands = ("shares", "events")

    def __init__(self) -> None:
        self.count = 0

    def change(self, request: Request, reply: Reply) -> Reply:
        if request.path not in ("/v1/shares", "/v1/account/events"):
            return reply
        self.count += 1
        return with_json(reply, {**json.loads(reply.body), "nextPage": f"x{self.count}"})


def trust_lies() -> list[Lie]:
    plain = [
        ServicePrefix, ServiceIterations, ServicePins, NoKeyring, OddTokens, OddShares, ShareElsewhere, EndlessShares,
        OldKeyring, HalfRotated, FalseRotation, FalsePassword, RaisedAgain,
    ]  # fmt: skip
    return [*stretching_lies(), *(kind() for kind in plain)]


__all__ = ["Exchange", "trust_lies"]
