"""What is held in memory for somebody who has no right to it, or does not fetch it."""

import asyncio
from collections import Counter

from scene import Attack, Scene, Stage
from traffic.people import Person, fresh_id, item, register_many, session_token
from traffic.wire import Connection, head, request

BLOCK = 31
MEBIBYTE = 1_048_576


def large_head(token: str, length: int) -> bytes:
    """The head of a request that may have 24 MiB of body."""
    return head(
        "PUT",
        f"/v1/rotations/{fresh_id()}/items",
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Length": str(length)},
    )


async def person_with_large_page(stage: Stage, name: str) -> Person:
    """Somebody whose first page of items is as large as a page can be."""
    person = (await register_many(stage.target, name, 1, BLOCK))[0]
    connection = await Connection.open(stage.target)
    for _ in range(5):
        reply = await connection.exchange(
            request("PUT", f"/v1/items/{fresh_id()}", item(1_000_000), person.token, {"If-None-Match": "*"})
        )
        if reply.status != 201:
            raise RuntimeError(f"a large item: {reply.status} {reply.body[:300]!r}")
    connection.close()
    return person


class LargeBodies(Attack):
    """Bodies of 24 MiB under tokens that were never issued, sent and held."""

    name = "large-bodies"
    says = "bodies of 24 MiB with made-up tokens over 72 connections: 5 MiB of each at once, the rest in drips"
    connections = 72

    async def run(self, scene: Scene) -> None:
        piece = b'{"items":[' + b" " * (64 * 1024 - 10)

        async def stranger(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                await connection.send(large_head(session_token(), 24 * MEBIBYTE))
                answer = asyncio.create_task(connection.reply())
                try:
                    for _ in range(80):
                        if answer.done():
                            break
                        await connection.send(piece)
                        await asyncio.sleep(0.005)
                    scene.counts["held"] += not answer.done()
                    while not answer.done():
                        await asyncio.sleep(0.5)
                        connection.writer.write(piece)
                    scene.saw(await answer)
                finally:
                    answer.cancel()
            await asyncio.sleep(0.5)

        await scene.crowd(self.connections, stranger)


class HeldBodies(Attack):
    """Bodies of accounts that may send them, as large as there are, and slow."""

    name = "held-bodies"
    says = "bodies of 24 MiB from 8 accounts: 12 MiB of each at once, the rest as slowly as it may come"
    connections = 8

    async def prepare(self, stage: Stage) -> None:
        self.people = await register_many(stage.target, "held", self.connections, BLOCK)

    async def run(self, scene: Scene) -> None:
        piece = b" " * (64 * 1024)

        async def sender(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                await connection.send(large_head(self.people[number].token, 24 * MEBIBYTE))
                answer = asyncio.create_task(connection.reply())
                try:
                    for _ in range(192):
                        if answer.done():
                            break
                        await connection.send(piece)
                    scene.counts["held"] += not answer.done()
                    while not answer.done():
                        await asyncio.sleep(2)
                        connection.writer.write(piece)
                    scene.saw(await answer)
                finally:
                    answer.cancel()
            await asyncio.sleep(0.5)

        await scene.crowd(self.connections, sender)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["held"] > 0


class _BombThrower(Attack):
    """24 MB of the smallest JSON values that there are."""

    connections = 4

    def token(self) -> str:
        raise NotImplementedError

    async def run(self, scene: Scene) -> None:
        count = 24 * MEBIBYTE // 7 - 8
        bomb = b'{"items":[' + b'{"":0},' * count + b'{"":0}]}'

        async def thrower(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                await connection.send(large_head(self.token(), len(bomb)))
                answer = asyncio.create_task(connection.reply())
                try:
                    for start in range(0, len(bomb), 256 * 1024):
                        if answer.done():
                            break
                        await connection.send(bomb[start : start + 256 * 1024])
                        await asyncio.sleep(0)
                    async with asyncio.timeout(30):
                        scene.saw(await answer)
                finally:
                    answer.cancel()
            await asyncio.sleep(0.5)

        await scene.crowd(self.connections, thrower)


class MadeUpBombs(_BombThrower):
    name = "made-up-bombs"
    says = '24 MB of [{"":0},…] with made-up tokens over 4 connections'

    def token(self) -> str:
        return session_token()


class Bombs(_BombThrower):
    name = "bombs"
    says = '24 MB of [{"":0},…] from an account over 4 connections'

    async def prepare(self, stage: Stage) -> None:
        self.person = (await register_many(stage.target, "bombs", 1, BLOCK))[0]

    def token(self) -> str:
        return self.person.token


class UnreadReplies(Attack):
    """Pages of 5 MB that are asked for and not fetched."""

    name = "unread-replies"
    says = "pages of 5 MB, asked for over 200 connections and never read"
    connections = 200

    async def prepare(self, stage: Stage) -> None:
        self.person = await person_with_large_page(stage, "unread")

    async def run(self, scene: Scene) -> None:
        page = request("GET", "/v1/items?limit=500", token=self.person.token)

        async def reader(number: int) -> None:
            async with scene.reluctant_connection(BLOCK, number) as connection:
                await connection.send(page)
                while not scene.over:
                    await asyncio.sleep(0.5)

        await scene.crowd(self.connections, reader)
