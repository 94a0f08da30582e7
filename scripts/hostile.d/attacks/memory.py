"""What is held in memory for somebody who has no right to it, or does not fetch it."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from scene import TROUBLE, Attack, Scene, Stage
from traffic.people import Person, fresh_id, item, register_many, session_token
from traffic.wire import Connection, head, loopback, request

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


async def upload(
    scene: Scene,
    place: int,
    token: str,
    length: int,
    at_once: Iterable[bytes],
    between: float = 0.0,
    drip: tuple[float, bytes] | None = None,
) -> None:
    """Sends a long body, as far as it is taken: pieces, then a further one after each pause, until there is an answer."""
    async with scene.connection(BLOCK, place) as connection:
        await connection.send(large_head(token, length))
        answer = asyncio.create_task(connection.reply())
        try:
            for piece in at_once:
                if answer.done():
                    break
                await connection.send(piece)
                await asyncio.sleep(between)
            scene.counts["held"] += not answer.done()
            while drip and not answer.done():
                await asyncio.sleep(drip[0])
                connection.writer.write(drip[1])
            async with asyncio.timeout(30):
                scene.saw(await answer)
        finally:
            answer.cancel()
    await asyncio.sleep(0.5)


PIECE = b" " * (64 * 1024)


class LargeBodies(Attack):
    """Bodies of 24 MiB under tokens that were never issued, sent and held."""

    name = "large-bodies"
    says = "bodies of 24 MiB with made-up tokens over 72 connections: 5 MiB of each at once, the rest in drips"
    connections = 72

    async def run(self, scene: Scene) -> None:
        async def stranger(number: int) -> None:
            await upload(
                scene, number, session_token(), 24 * MEBIBYTE, [PIECE] * 80, between=0.005, drip=(0.5, PIECE)
            )

        await scene.crowd(self.connections, stranger)


class HeldBodies(Attack):
    """Bodies of accounts that may send them, as large as there are, and slow."""

    name = "held-bodies"
    says = "bodies of 24 MiB from 8 accounts: 12 MiB of each at once, the rest as slowly as it may come"
    connections = 8

    async def prepare(self, stage: Stage) -> None:
        self.people = await register_many(stage.target, "held", self.connections, BLOCK)

    async def run(self, scene: Scene) -> None:
        async def sender(number: int) -> None:
            await upload(
                scene, number, self.people[number].token, 24 * MEBIBYTE, [PIECE] * 192, drip=(2, PIECE)
            )

        await scene.crowd(self.connections, sender)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["held"] > 0


class GuestBodies(Attack):
    """Bodies of people who have no account yet, announced, sent but for a little, and held."""

    name = "guest-bodies"
    says = "registrations of 60 kB over 400 connections: parts from all to nearly nothing at once, the rest in drips"
    connections = 400
    length = 60_000
    #: The small ones take the room that the large ones leave.
    beginnings = (59_000, 30_000, 8_000, 2_000, 500)

    async def run(self, scene: Scene) -> None:
        fields = {"Content-Type": "application/json", "Content-Length": str(self.length)}

        async def guest(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                beginning = self.beginnings[number % len(self.beginnings)]
                await connection.send(head("POST", "/v1/accounts", fields) + b" " * beginning)
                answer = asyncio.create_task(connection.reply())
                try:
                    while not answer.done() and not scene.over:
                        await asyncio.sleep(1)
                        connection.writer.write(b" " * 16)
                    scene.counts["held"] += not answer.done()
                    if answer.done():
                        scene.saw(answer.result())
                finally:
                    answer.cancel()

        async def neighbour() -> None:
            await asyncio.sleep(2)
            while not scene.over:
                connection = await Connection.open(scene.stage.target, loopback(BLOCK + 1, 0))
                try:
                    reply = await connection.exchange(head("POST", "/v1/accounts", fields) + b" " * self.length)
                    scene.counts["refused neighbour" if reply.status == 503 else "neighbour"] += 1
                except TROUBLE:
                    scene.counts["refused neighbour"] += 1
                finally:
                    connection.close()
                await asyncio.sleep(0.25)

        async with asyncio.TaskGroup() as group:
            group.create_task(scene.crowd(self.connections, guest))
            group.create_task(neighbour())

    def objection(self, counts: Counter[str]) -> str | None:
        # A rejected request makes room for the next one.
        if counts["neighbour"] * 3 < counts["refused neighbour"]:
            return f"of somebody else's bodies {counts['neighbour']} found room, {counts['refused neighbour']} did not"
        return None


class LargeBodyMemory(Attack):
    """The memory for large bodies, taken and kept by slow senders of many accounts at two addresses."""

    name = "lent-memory"
    says = "bodies of 24 MiB from 6 accounts at 2 addresses: 3 MiB at once, then 13 kB/s; somebody else puts 4 MiB"
    connections = 6
    is_quick = False
    least_seconds = 100.0
    #: One holder of the memory and one waiter at each address; afterwards they queue behind others.
    patience = 60

    async def prepare(self, stage: Stage) -> None:
        self.people = await register_many(stage.target, "lent", self.connections, BLOCK)
        self.neighbour = (await register_many(stage.target, "lent-neighbour", 1, BLOCK + 1))[0]

    async def run(self, scene: Scene) -> None:
        batch = {"operations": [{"op": "put", "id": fresh_id(), **item(MEBIBYTE - 1024)} for _ in range(4)]}

        async def sender(number: int) -> None:
            await upload(
                scene, number % 2, self.people[number].token, 24 * MEBIBYTE, [PIECE] * 48, drip=(4.9, PIECE)
            )

        async def put() -> None:
            while not scene.over:
                connection = await Connection.open(scene.stage.target, loopback(BLOCK + 1, 0))
                try:
                    reply = await connection.exchange(
                        request("POST", "/v1/items/batch", batch, self.neighbour.token)
                    )
                except TROUBLE:
                    # A refusal may come before the request has been sent to its end.
                    scene.counts["refused puts"] += 1
                else:
                    if reply.status == 200:
                        return
                    scene.counts[f"puts {reply.status}"] += 1
                finally:
                    connection.close()
                await asyncio.sleep(1)

        async def neighbour() -> None:
            while scene.counts["held"] < 2:
                await asyncio.sleep(0.1)
            while not scene.over:
                begun = time.monotonic()
                await put()
                scene.counts["puts"] += 1
                seconds = int(time.monotonic() - begun)
                scene.counts["longest put"] = max(scene.counts["longest put"], seconds)
                await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            group.create_task(scene.crowd(self.connections, sender))
            group.create_task(neighbour())

    def objection(self, counts: Counter[str]) -> str | None:
        if counts["puts"] < 10:
            return f"somebody else's 4 MiB were put {counts['puts']} times"
        if counts["longest put"] > self.patience:
            return f"somebody else's 4 MiB took {counts['longest put']} s"
        return None


class _BombThrower(Attack):
    """24 MB of the smallest JSON values that there are."""

    connections = 4

    def token(self) -> str:
        raise NotImplementedError

    async def run(self, scene: Scene) -> None:
        count = 24 * MEBIBYTE // 7 - 8
        bomb = b'{"items":[' + b'{"":0},' * count + b'{"":0}]}'
        pieces = [bomb[start : start + 256 * 1024] for start in range(0, len(bomb), 256 * 1024)]

        async def thrower(number: int) -> None:
            await upload(scene, number, self.token(), len(bomb), pieces)

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
