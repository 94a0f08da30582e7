"""Requests that are repeated when a slow machine has exhausted the server's time limits."""

import http.client
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from traffic.blocking import BlockingConnection
from traffic.ruler import Ruler
from traffic.wire import ConnectionEnded, Reply, Target

ATTEMPTS = 20
# Seconds before an attempt that follows a disturbed one.
PAUSE = 1.0
# The shortest of the server's limits in seconds: one that closes a connection earlier, or replies 408, does so for another reason.
SHORTEST_LIMIT = 5.0
PASSING = ("database_unavailable", "overloaded", "handler_timeout")
# How a connection ends.
LOSSES = (OSError, ConnectionEnded, http.client.HTTPException)

Losses = tuple[type[Exception], ...]


@dataclass
class Attempt:
    #: From 1.
    number: int
    #: Of the monotonic clock.
    begin: float


@dataclass
class Answer(Reply):
    #: The attempts before it, each of which may have had its effect.
    repeats: int = 0


def passes(reply: Reply, seconds: float) -> bool:
    """Whether the same request can succeed when it is sent again."""
    if reply.status == 408:
        return seconds >= SHORTEST_LIMIT
    try:
        return reply.status == 503 and "retry-after" in reply.fields and reply.json["code"] in PASSING
    except (ValueError, KeyError, TypeError):
        return False


def repeat(
    send: Callable[[Attempt], Reply],
    name: str,
    *,
    creates: bool = False,
    attempts: int = ATTEMPTS,
    losses: Losses = (),
    ruler: Ruler | None = None,
) -> Answer:
    """The first reply that no slow machine disturbs.

    A repeat of a request that `creates` may find its own earlier effect and have the status 200: 201 is returned for it. An error
    of `losses` after the shortest limit is a disturbance. With a `ruler`, a reply is one only if the machine paused meanwhile.
    """
    number = 1
    while True:
        attempt = Attempt(number, time.monotonic())
        try:
            reply = send(attempt)
            is_disturbed = passes(reply, time.monotonic() - attempt.begin)
            if number == attempts or not is_disturbed or (ruler is not None and not ruler.was_disturbed(attempt.begin)):
                status = 201 if creates and number > 1 and reply.status == 200 else reply.status
                return Answer(status, reply.fields, reply.body, number - 1)
            failure = str(reply.status)
        except losses as error:
            if number == attempts or time.monotonic() - attempt.begin < SHORTEST_LIMIT:
                raise
            failure = repr(error)
        print(f"repeated after {failure}: {name}", file=sys.stderr)
        number += 1
        time.sleep(PAUSE)


def exchange(
    connection: BlockingConnection,
    data: bytes,
    *,
    creates: bool = False,
    losses: Losses = LOSSES,
    ruler: Ruler | None = None,
) -> Answer:
    """The answer to a whole request."""
    name = data.split(b" HTTP", 1)[0].decode()
    return repeat(lambda _: connection.exchange(data), name, creates=creates, losses=losses, ruler=ruler)


def exchange_alone(target: Target, data: bytes, *, creates: bool = False) -> Answer:
    """The same on a connection of its own, which no server may close before it replies."""
    connection = BlockingConnection(target, patience=180)
    try:
        return exchange(connection, data, creates=creates, losses=())
    finally:
        connection.close()


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    *,
    creates: bool = False,
    attempts: int = ATTEMPTS,
) -> Answer:
    """The answer by the HTTP client of Python's library."""

    def send(_: Attempt) -> Reply:
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
        except LOSSES:
            # The next request opens it again.
            connection.close()
            raise

    return repeat(send, f"{method} {path}", creates=creates, attempts=attempts, losses=LOSSES)
