"""Requests that are repeated when a slow machine has exhausted the server's time limits."""

import http.client
import json
import sys
import time
from dataclasses import dataclass
from email.message import Message
from typing import Any

from traffic.blocking import BlockingConnection
from traffic.wire import ConnectionEnded, Reply

ATTEMPTS = 20
# The shortest of the server's limits in seconds: one that closes a connection earlier, or replies 408, does so for another reason.
SHORTEST_LIMIT = 5.0
PASSING = ("database_unavailable", "overloaded", "handler_timeout")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    content: bytes
    #: A write that is repeated may have been stored the first time.
    is_repeated_write: bool = False

    def has(self, status: int) -> bool:
        return self.status == status or (self.is_repeated_write and (status, self.status) == (201, 200))


def passes(status: int, retry_after: str | None, content: bytes, seconds: float) -> bool:
    """Whether the same request can succeed when it is sent again."""
    if status == 408:
        return seconds >= SHORTEST_LIMIT
    try:
        return status == 503 and retry_after is not None and json.loads(content)["code"] in PASSING
    except (ValueError, KeyError, TypeError):
        return False


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any, headers: dict[str, str], attempts: int = ATTEMPTS
) -> Answer:
    attempt = 1
    while True:
        begin = time.monotonic()
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            answer = Answer(reply.status, reply.headers, reply.read(), attempt > 1 and method == "PUT")
            seconds = time.monotonic() - begin
            if attempt == attempts or not passes(answer.status, answer.headers.get("Retry-After"), answer.content, seconds):
                return answer
            failure = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            # The next request opens it again.
            connection.close()
            if attempt == attempts or time.monotonic() - begin < SHORTEST_LIMIT:
                raise
            failure = repr(error)
        print(f"repeated after {failure}: {method} {path}", file=sys.stderr)
        attempt += 1
        time.sleep(1)


def exchange(connection: BlockingConnection, data: bytes) -> Reply:
    attempt = 1
    while True:
        begin = time.monotonic()
        try:
            reply = connection.exchange(data)
            seconds = time.monotonic() - begin
            if attempt == ATTEMPTS or not passes(reply.status, reply.fields.get("retry-after"), reply.body, seconds):
                return reply
        except (OSError, ConnectionEnded):
            if attempt == ATTEMPTS or time.monotonic() - begin < SHORTEST_LIMIT:
                raise
        attempt += 1
        time.sleep(1)
