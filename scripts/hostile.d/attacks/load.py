"""What is allowed, and much of it."""

import asyncio
from collections import Counter
from typing import Any

from attacks.locks import fill_with_items
from attacks.memory import person_with_large_page
from scene import Attack, Scene, Stage
from traffic.people import fresh_id, item, register, register_many
from traffic.wire import request

BLOCK = 61


class _Load(Attack):
    is_quick = False


class OneAccount(_Load):
    name = "one-account"
    says = "log-ins, writes and batches of one account over 64 connections"
    connections = 64

    async def prepare(self, stage: Stage) -> None:
        self.person = (await register_many(stage.target, "busy", 1, BLOCK))[0]

    async def run(self, scene: Scene) -> None:
        async def device(number: int) -> None:
            operations = [{"op": "put", "id": fresh_id(), **item(100)} for _ in range(20)]
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    reply = scene.saw(await connection.exchange(self.person.log_in()))
                    if reply.status != 201:
                        await asyncio.sleep(0.5)
                        continue
                    token = reply.json["session"]["token"]
                    write = request("PUT", f"/v1/items/{operations[0]['id']}", item(100), token, {"If-Match": "*"})
                    batch = request("POST", "/v1/items/batch", {"operations": operations}, token)
                    for data in [batch, write, batch, write]:
                        scene.saw(await connection.exchange(data))
                    await asyncio.sleep(0.05)

        await scene.crowd(self.connections, device)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["200"] > 100


class LargePages(_Load):
    name = "large-pages"
    says = "pages of 5 MB, asked for and read again and again over 8 connections"
    connections = 8

    async def prepare(self, stage: Stage) -> None:
        self.person = await person_with_large_page(stage, "pages")

    async def run(self, scene: Scene) -> None:
        page = request("GET", "/v1/items?limit=500", token=self.person.token)

        async def reader(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    scene.saw(await connection.exchange(page))
                    await asyncio.sleep(0.1)

        await scene.crowd(self.connections, reader)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["200"] >= self.connections


class LargeBatches(_Load):
    name = "large-batches"
    says = "batches of 7 MB from an account over 4 connections"
    connections = 4

    async def prepare(self, stage: Stage) -> None:
        self.person = (await register_many(stage.target, "batches", 1, BLOCK))[0]

    async def run(self, scene: Scene) -> None:
        async def writer(number: int) -> None:
            operations: list[dict[str, Any]] = [{"op": "put", "id": fresh_id(), **item(1_000_000)} for _ in range(5)]
            batch = request("POST", "/v1/items/batch", {"operations": operations}, self.person.token)
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    scene.saw(await connection.exchange(batch))
                    await asyncio.sleep(0.2)

        await scene.crowd(self.connections, writer)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["200"] + counts["429"] + counts["503"] >= self.connections


class Pipelines(_Load):
    name = "pipelines"
    says = "2,000 requests at once on each of 16 connections, again and again"
    connections = 16

    async def run(self, scene: Scene) -> None:
        burst = request("GET", "/v1/service") * 2_000

        async def sender(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    sending = asyncio.create_task(connection.send(burst))
                    for _ in range(2_000):
                        scene.saw(await connection.reply())
                    await sending
                    await asyncio.sleep(0.1)

        await scene.crowd(self.connections, sender)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["200"] > 2_000


class Deletions(_Load):
    """Deletions of large accounts: long transactions that hold locks."""

    name = "deletions"
    says = "accounts of 9,000 items, deleted one after another, with devices that write to them"
    connections = 1

    async def run(self, scene: Scene) -> None:
        async with scene.connection(BLOCK, 0) as connection, scene.connection(BLOCK, 1) as device:
            while not scene.over:
                person = await register(connection, "short-lived")
                await asyncio.to_thread(fill_with_items, scene.stage, person, 9_000)
                proof = {"currentPasswordKey": person.key}
                deletion = connection.exchange(request("DELETE", "/v1/account", proof, person.token))
                write = request("PUT", f"/v1/items/{fresh_id()}", item(64), person.token, {"If-None-Match": "*"})
                reply, _ = await asyncio.gather(deletion, device.exchange(write))
                scene.saw(reply)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["204"] > 0
