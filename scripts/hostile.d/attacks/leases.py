"""Requests of strangers that take a transaction each."""

import asyncio
import base64
import os
import string
from collections import Counter

from scene import Attack, Scene
from traffic.people import sealed
from traffic.wire import request

BLOCK = 23
LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def share_id() -> str:
    """A well-formed one that leads nowhere."""
    number, text = int.from_bytes(os.urandom(15)), ""
    for _ in range(22):
        number, digit = divmod(number, 62)
        text = LETTERS[digit] + text
    return text


def manage_token() -> str:
    return "slm_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


class Leases(Attack):
    """Every lease of a connection to the database is one that somebody else waits for."""

    name = "leases"
    says = "shares that are not there, deleted and replaced with made-up tokens over 64 connections"
    connections = 64

    async def run(self, scene: Scene) -> None:
        content = {"format": "aes-256-gcm", "salt": sealed(16), "iterations": 600_000, "sealed": sealed(64)}

        async def stranger(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    scene.saw(
                        await connection.exchange(request("DELETE", f"/v1/shares/{share_id()}", token=manage_token()))
                    )
                    scene.saw(
                        await connection.exchange(request("PUT", f"/v1/shares/{share_id()}", content, manage_token()))
                    )
                    await asyncio.sleep(0.05)

        await scene.crowd(self.connections, stranger)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["404"] >= self.connections
