"""Replies that are HTTP, but not the JSON that openapi.yaml describes."""

import random
from typing import Any, ClassVar

from kinds import Restated
from traffic.relay import Exchange, Lie, Reply, Request

MEGABYTE = 1 << 20
#: About as long as the longest reply that the client takes.
LONG = 23 * MEGABYTE
EXTREMES = [
    2**63 - 1, 2**63 - 2, 2**63, 2**64 - 1, -(2**63), -1, 0, 2**31, 1e308, 0.5, -0.0,
]  # fmt: skip
WRONG: list[Any] = [
    None, True, "", "x" * 10_000, 0, -1, 2**63 - 1, 1.5, [], {}, [[]], {"": {}}, "\x00", "\ud800", "../../etc/passwd",
    "=", "9999-99-99T99:99:99Z", "+275760-09-13T00:00:00Z", "00000000-0000-0000-0000-000000000000",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a JSON value."""
    found = [path]
    members: Any = []
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value[:3])
    for key, member in members:
        found += places(member, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


def removed(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = removed(value[path[0]], path[1:])
    return copy


class Reshaped(Restated):
    """Changes the JSON of each reply that has some."""

    hurry = 8
    is_about_errors = True


class WrongTypes(Reshaped):
    name = "wrong-types"
    says = "one value of every other reply is of another type, or missing"
    commands = tuple(word for _ in range(10) for word in ("sync", "folder")) + ("again", "events", "shares", "devices")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def restated(self, request: Request, value: Any) -> Any:
        if self.random.random() < 0.5:
            return value
        path = self.random.choice(places(value))
        if path and self.random.random() < 0.2:
            return removed(value, path)
        return replaced(value, path, self.random.choice(WRONG))


class ExtremeNumbers(Reshaped):
    name = "extreme-numbers"
    says = "all numbers of each reply are an extreme one, of the next reply the next"
    commands = ("sync", "folder", "again", "events", "shares", "devices") * 3

    def restated(self, request: Request, value: Any) -> Any:
        extreme = self.in_turn(EXTREMES)

        def extremes(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: extremes(member) for name, member in value.items()}
            if isinstance(value, list):
                return [extremes(element) for element in value]
            return extreme if isinstance(value, int | float) and not isinstance(value, bool) else value

        return extremes(value)


class OneExtreme(ExtremeNumbers):
    name = "one-extreme"
    says = "one number of each reply is an extreme one"

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def restated(self, request: Request, value: Any) -> Any:
        numbers = []
        for path in places(value):
            member = value
            for key in path:
                member = member[key]
            if isinstance(member, int | float) and not isinstance(member, bool):
                numbers.append(path)
        return replaced(value, self.random.choice(numbers), self.in_turn(EXTREMES)) if numbers else value


class Texts(Lie):
    """The same text for each reply, with a status that takes turns."""

    hurry = 8
    commands = ("sync", "sync", "folder", "again", "events", "shares")
    text: ClassVar[bytes]

    async def lie(self, exchange: Exchange) -> None:
        status = self.in_turn([200, 500, 400, 412])
        await exchange.send(Reply(status, {"content-type": "application/json"}, self.text))


class DeepArrays(Texts):
    name, says = "deep-arrays", "arrays in arrays, 900,000 deep"
    text = b"[" * 900_000


class DeepObjects(Texts):
    name, says = "deep-objects", "objects in objects, 100,000 deep, in a member that openapi.yaml does not have"
    text = b'{"changes":[],"cursor":"x","more":false,"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


class LongListing(Lie):
    """A listing as long as the client takes it."""

    hurry = 8
    calls = ("* /v1/changes", "* /v1/sessions", "* /v1/items/batch")
    head: ClassVar[bytes] = b'{"cursor":"x","more":false,"changes":['
    piece: ClassVar[bytes]
    tail: ClassVar[bytes] = b"]}"

    async def lie(self, exchange: Exchange) -> None:
        limit = LONG if exchange.request.path == "/v1/changes" else 1_000_000
        count = (limit - len(self.head) - len(self.tail)) // len(self.piece)
        body = self.head + self.piece * count + self.tail
        await exchange.send(Reply(200, {"content-type": "application/json"}, body))


class ManyNumbers(LongListing):
    name, says, piece = "many-numbers", "a listing of 11 million numbers", b"0,"


class ManyObjects(LongListing):
    name, says, piece = "many-objects", "a listing of 7 million empty objects", b"{},"


class ManyMembers(LongListing):
    name, says, piece = "many-members", "an object of millions of members with one name", b'"a":0,'
    head = b'{"cursor":"x","more":false,"changes":[],"other":{'
    tail = b'"a":0}}'


class ManyTexts(LongListing):
    name, says = "many-texts", "millions of short texts in a member that openapi.yaml does not have"
    head, piece, tail = b'{"cursor":"x","more":false,"changes":[],"other":[', b'"",', b'""]}'


class LongNumber(LongListing):
    name, says = "long-number", "a number of 23 million digits"
    head, piece, tail = b'{"cursor":"x","more":false,"changes":[],"revisionBase":1', b"0" * 100, b"}"


class Escapes(LongListing):
    name, says = "escapes", "a cursor of millions of escape sequences"
    head, piece, tail = b'{"more":false,"changes":[],"cursor":"', b"\\u0000", b'"}'


class NoJSON(Lie):
    name = "no-json"
    says = "JSON with a byte order mark, in UTF-16, not UTF-8, with NaN, comments, or two values"
    hurry = 8
    commands = ("sync", "folder") * 4

    async def lie(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        text = reply.body.decode("utf-8", "replace")
        body = self.in_turn(
            [
                b"\xef\xbb\xbf" + reply.body,
                text.encode("utf-16"),
                reply.body.replace(b'"', b'"\xff', 1),
                b'{"cursor":NaN,"more":Infinity,"changes":[]}',
                b"/* */" + reply.body + b"// x",
                reply.body + reply.body,
                b"",
            ]
        )
        await exchange.send(Reply(reply.status, reply.fields, body))


def json_lies(seed: int) -> list[Lie]:
    plain = [
        DeepArrays, DeepObjects, ManyNumbers, ManyObjects, ManyMembers, ManyTexts, LongNumber, Escapes, NoJSON,
    ]  # fmt: skip
    return [WrongTypes(seed), ExtremeNumbers(), OneExtreme(seed), *(kind() for kind in plain)]
