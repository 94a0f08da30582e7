"""People with accounts, and what they send."""

import asyncio
import base64
import os
import uuid
from dataclasses import dataclass
from typing import Any

from traffic.wire import Connection, Target, loopback, request

ITERATIONS = 600_000


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def password_key() -> str:
    """What PBKDF2 could have made. The first byte is no ASCII: never mistaken for a password."""
    return base64_of(b"\xff" + os.urandom(31))


def sealed(count: int) -> str:
    return base64_of(b"\xff" + os.urandom(count - 1))


def session_token() -> str:
    """One that was never issued."""
    return "slt_" + base64.urlsafe_b64encode(os.urandom(48)).decode().rstrip("=")


def item(count: int) -> dict[str, Any]:
    return {"format": "aes-256-gcm", "body": sealed(count)}


def share(count: int) -> dict[str, Any]:
    return {"format": "aes-256-gcm", "salt": sealed(16), "iterations": ITERATIONS, "sealed": sealed(count)}


def fresh_id() -> str:
    return str(uuid.uuid4())


@dataclass
class Person:
    userid: str
    key: str
    account_id: str
    token: str
    device_token: str

    def log_in(self, device: bool = True) -> bytes:
        body: dict[str, Any] = {"userid": self.userid, "passwordKey": self.key}
        if device:
            body["device"] = {"token": self.device_token}
        return request("POST", "/v1/sessions", body)


async def register(connection: Connection, name: str) -> Person:
    userid, key = f"{name}-{os.urandom(6).hex()}@example.org", password_key()
    body = {"userid": userid, "passwordKey": key, "kdf": {"iterations": ITERATIONS}}
    reply = await connection.exchange(request("POST", "/v1/accounts", body))
    if reply.status != 201:
        raise RuntimeError(f"registration: {reply.status} {reply.body[:300]!r}")
    made = reply.json
    return Person(userid, key, made["accountId"], made["session"]["token"], made["deviceToken"])


async def register_many(target: Target, name: str, count: int, block: int) -> list[Person]:
    """So many accounts, made from as many addresses as it takes not to be limited."""

    async def some(first: int) -> list[Person]:
        connection = await Connection.open(target, loopback(block, first))
        try:
            return [await register(connection, f"{name}-{number}") for number in range(first, count, 8)]
        finally:
            connection.close()

    parts = await asyncio.gather(*(some(first) for first in range(min(8, count))))
    return [person for part in parts for person in part]
