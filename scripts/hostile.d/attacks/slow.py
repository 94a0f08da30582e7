"""Clients that take their time, in each phase of a request."""

import asyncio
from collections.abc import Awaitable, Callable

from attacks.memory import large_head, person_with_large_page
from scene import Attack, Scene, Stage
from traffic.people import Person
from traffic.wire import connect, loopback, request

BLOCK = 41
EACH = 200
PACE = 1.0

Act = Callable[[Scene, int], Awaitable[None]]

# The beginning of a TLS record that announces 512 bytes of ClientHello.
CLIENT_HELLO = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])


async def drip_handshake(scene: Scene, number: int) -> None:
    made = await connect(scene.stage.target, loopback(BLOCK, number))
    scene.connected()
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(made, CLIENT_HELLO)
        while not scene.over:
            await asyncio.sleep(PACE)
            await loop.sock_sendall(made, b"\0")
    finally:
        made.close()


async def drip_head(scene: Scene, number: int) -> None:
    async with scene.connection(BLOCK, number) as connection:
        await connection.send(b"GET /v1/service HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        while not connection.reader.at_eof():
            await asyncio.sleep(PACE)
            await connection.send(b"a")


async def drip_body(scene: Scene, number: int, token: str) -> None:
    async with scene.connection(BLOCK, number) as connection:
        await connection.send(large_head(token, 1_000_000))
        while not connection.reader.at_eof():
            await asyncio.sleep(PACE)
            await connection.send(b" ")


async def drip_reply(scene: Scene, number: int, token: str) -> None:
    async with scene.reluctant_connection(BLOCK, number) as connection:
        await connection.send(request("GET", "/v1/items?limit=500", token=token))
        while not scene.over:
            await asyncio.sleep(PACE)
            await connection.take(4096)


async def hold_stream(scene: Scene, number: int, token: str) -> None:
    async with scene.reluctant_connection(BLOCK, number) as connection:
        await connection.send(request("GET", "/v1/changes/stream", token=token))
        while not scene.over:
            await asyncio.sleep(5 * PACE)
            await connection.take(4096)


class _Slow(Attack):
    """So many clients, all slow in one phase."""

    is_quick = False
    connections = EACH

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        raise NotImplementedError

    async def run(self, scene: Scene) -> None:
        await scene.crowd(self.connections, lambda number: self.act(scene, number))


class _SlowWithAccount(_Slow):
    person: Person

    async def prepare(self, stage: Stage) -> None:
        self.person = await person_with_large_page(stage, self.name)


class SlowHandshakes(_Slow):
    name = "slow-handshakes"
    says = f"{EACH} TLS handshakes, a byte a second"

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        return drip_handshake(scene, number)


class SlowHeads(_Slow):
    name = "slow-heads"
    says = f"{EACH} heads of requests, a byte a second"

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        return drip_head(scene, number)


class SlowBodies(_SlowWithAccount):
    name = "slow-bodies"
    says = f"{EACH} bodies of a megabyte from an account, a byte a second"

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        return drip_body(scene, number, self.person.token)


class SlowReplies(_SlowWithAccount):
    name = "slow-replies"
    says = f"{EACH} pages of 5 MB, 4 kB taken a second"

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        return drip_reply(scene, number, self.person.token)


class SlowStreams(_SlowWithAccount):
    name = "slow-streams"
    says = f"{EACH} live streams of one account that are hardly read"

    def act(self, scene: Scene, number: int) -> Awaitable[None]:
        return hold_stream(scene, number, self.person.token)


class SlowClients(_SlowWithAccount):
    name = "slow-clients"
    says = f"all of these at once, {EACH} each: 1,000 connections"
    is_quick = True
    connections = 5 * EACH
    least_seconds = 6.0

    async def run(self, scene: Scene) -> None:
        acts: list[Act] = [
            drip_handshake,
            drip_head,
            lambda scene, number: drip_body(scene, number, self.person.token),
            lambda scene, number: drip_reply(scene, number, self.person.token),
            lambda scene, number: hold_stream(scene, number, self.person.token),
        ]
        await scene.crowd(self.connections, lambda number: acts[number % len(acts)](scene, number), ramp=4.0)
