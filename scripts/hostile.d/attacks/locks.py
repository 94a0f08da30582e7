"""One account, or one share, that everybody waits for."""

import asyncio
from collections import Counter

from scene import Attack, Scene, Stage
from traffic.database import HeldLock, lock_account
from traffic.people import ITERATIONS, Person, fresh_id, item, password_key, register_many, share
from traffic.wire import Connection, Reply, request

BLOCK = 21


async def owner_of_trouble(stage: Stage, name: str) -> Person:
    return (await register_many(stage.target, name, 1, BLOCK))[0]


def put(person: Person) -> bytes:
    return request("PUT", f"/v1/items/{fresh_id()}", item(100), person.token, {"If-None-Match": "*"})


def fill_with_items(stage: Stage, person: Person, count: int) -> None:
    """So many small items, as that many PUTs would leave them."""
    stage.owner.run(
        f"""
        WITH past AS (
            INSERT INTO saltern.items
                (account_id, item_id, revision, collection, format, body, created_at, updated_at)
            SELECT a.account_id, gen_random_uuid(), a.revision + n, 'default', 'aes-256-gcm',
                sha256(n::text::bytea) || sha256((n + 1)::text::bytea), now(), now()
            FROM saltern.accounts a, generate_series(1, {count}) n WHERE a.account_id = '{person.account_id}')
        UPDATE saltern.accounts
        SET revision = revision + {count}, item_count = item_count + {count}, item_bytes = item_bytes + 64 * {count}
        WHERE account_id = '{person.account_id}';
        ANALYZE saltern.items;
        """
    )


class BrokenStatement(Attack):
    """A lock time-out in front of a statement that is being prepared."""

    name = "statement"
    says = "an account locked for 7 s, PUTs to it at 0, 0.3 and 5.5 s on connections on which nothing is prepared"
    least_seconds = 8.0
    head_start = 1.0
    connections = 96

    async def prepare(self, stage: Stage) -> None:
        self.person = await owner_of_trouble(stage, "statement")

    async def run(self, scene: Scene) -> None:
        async def writer(number: int, wait: float) -> None:
            await asyncio.sleep(wait)
            async with scene.connection(BLOCK, number) as connection:
                scene.saw(await connection.exchange(put(self.person)))

        waits = [0.0] * 32 + [0.3] * 32 + [5.5] * 32
        with HeldLock(scene.stage.owner, lock_account(self.person.account_id)):
            writers = [asyncio.create_task(writer(number, wait)) for number, wait in enumerate(waits)]
            await asyncio.sleep(7)
        await asyncio.gather(*writers, return_exceptions=True)
        while not scene.over:
            await asyncio.sleep(0.1)


class LockedAccount(Attack):
    """An account whose row somebody has locked, with many devices that write."""

    name = "locked-account"
    says = "an account locked by psql, with 128 devices that write to it, log in and share"
    connections = 128

    async def prepare(self, stage: Stage) -> None:
        self.person = await owner_of_trouble(stage, "locked")

    async def run(self, scene: Scene) -> None:
        def batch() -> bytes:
            operations = [{"op": "put", "id": fresh_id(), **item(100)}]
            return request("POST", "/v1/items/batch", {"operations": operations}, self.person.token)

        async def device(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    match number % 8:
                        case 0:
                            data = batch()
                        case 1:
                            data = self.person.log_in()
                        case 2:
                            data = request("POST", "/v1/shares", share(100), self.person.token)
                        case _:
                            data = put(self.person)
                    scene.saw(await connection.exchange(data))
                    await asyncio.sleep(0.5)

        with HeldLock(scene.stage.owner, lock_account(self.person.account_id)):
            await scene.crowd(self.connections, device)


class RotationCommit(Attack):
    """The commit of a rotation holds the account's row; its devices write meanwhile."""

    name = "rotation"
    says = "commits of a rotation of 9,000 items, with 48 devices that write to the account"
    # What counts is that one was committed.
    connections = 0
    is_spent = True
    items = 9_000

    async def prepare(self, stage: Stage) -> None:
        self.person = await owner_of_trouble(stage, "rotation")
        fill_with_items(stage, self.person, self.items)

    async def run(self, scene: Scene) -> None:
        async with scene.connection(BLOCK, 0) as main:
            devices = [await Connection.open(scene.stage.target) for _ in range(48)]
            known = fresh_id()
            await main.exchange(
                request("PUT", f"/v1/items/{known}", item(64), self.person.token, {"If-None-Match": "*"})
            )
            while not scene.over:
                opened = await main.exchange(
                    request("POST", "/v1/rotations", {"currentPasswordKey": self.person.key}, self.person.token)
                )
                if opened.status != 201:
                    scene.counts[f"open {opened.status}"] += 1
                    await asyncio.sleep(0.5)
                    continue
                rotation = opened.json["id"]
                await asyncio.to_thread(self.stage_items, scene.stage, rotation)
                key = password_key()
                body = {"currentPasswordKey": self.person.key, "passwordKey": key, "kdf": {"iterations": ITERATIONS}}
                commit = request("POST", f"/v1/rotations/{rotation}/commit", body, self.person.token)
                write = request("PUT", f"/v1/items/{known}", item(64), self.person.token, {"If-Match": "*"})

                async def later(device: Connection, write: bytes = write) -> Reply:
                    await asyncio.sleep(0.05)
                    return await device.exchange(write)

                reply, *_ = await asyncio.gather(main.exchange(commit), *map(later, devices), return_exceptions=True)
                if isinstance(reply, BaseException):
                    raise reply
                scene.counts[f"commit {reply.status}"] += 1
                if reply.status == 200:
                    self.person.key = key
                    scene.in_place.set()
            for device in devices:
                device.close()

    def stage_items(self, stage: Stage, rotation: str) -> None:
        """What many PUTs would stage: every item as it is."""
        stage.owner.run(
            f"""
            WITH staged AS (
                INSERT INTO saltern.rotation_items
                    (account_id, rotation_id, item_id, base_revision, format, iterations, title, body)
                SELECT account_id, '{rotation}', item_id, revision, format, iterations, title, body
                FROM saltern.items WHERE account_id = '{self.person.account_id}' AND NOT deleted
                RETURNING octet_length(body) AS bytes)
            UPDATE saltern.rotations SET item_count = s.items, item_bytes = s.bytes
            FROM (SELECT count(*) AS items, sum(bytes) AS bytes FROM staged) s
            WHERE account_id = '{self.person.account_id}' AND rotation_id = '{rotation}';
            """
        )

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["commit 200"] > 0


class PopularShare(Attack):
    """One share that everybody opens: each view locks its row."""

    name = "popular-share"
    says = "one share, opened again and again over 64 connections"
    connections = 64

    async def prepare(self, stage: Stage) -> None:
        person = await owner_of_trouble(stage, "popular")
        connection = await Connection.open(stage.target)
        made = await connection.exchange(request("POST", "/v1/shares", share(1024), person.token))
        connection.close()
        self.share_id = made.json["id"]

    async def run(self, scene: Scene) -> None:
        view = request("GET", f"/v1/shares/{self.share_id}")

        async def reader(number: int) -> None:
            async with scene.connection(BLOCK + 1, number) as connection:
                while True:
                    scene.saw(await connection.exchange(view))
                    await asyncio.sleep(0.02)

        await scene.crowd(self.connections, reader)

    def took_place(self, counts: Counter[str]) -> bool:
        # When the queue of a share is full, further requests for it receive a retry time.
        return counts["200"] >= self.connections and counts["200"] + counts["429"] + counts["503"] >= 3 * self.connections


class ShareDeletions(Attack):
    """Deletions of an account's shares, each a transaction that waits for the account's row."""

    name = "share-deletions"
    says = "24 deletions of shares by manage token, again and again, of an account whose rows are locked"
    connections = 24

    async def prepare(self, stage: Stage) -> None:
        self.person = await owner_of_trouble(stage, "deletions")
        self.shares: list[tuple[str, str]] = []
        connection = await Connection.open(stage.target)
        for _ in range(self.connections):
            made = await connection.exchange(request("POST", "/v1/shares", share(64), self.person.token))
            self.shares.append((made.json["id"], made.json["manageToken"]))
        connection.close()

    async def run(self, scene: Scene) -> None:
        async def manager(number: int) -> None:
            share_id, token = self.shares[number]
            async with scene.connection(BLOCK, number) as connection:
                while True:
                    scene.saw(await connection.exchange(request("DELETE", f"/v1/shares/{share_id}", token=token)))
                    await asyncio.sleep(0.2)

        # What the account's deletion holds.
        locked = (
            f"{lock_account(self.person.account_id)}; "
            f"SELECT FROM saltern.account_shares WHERE account_id = '{self.person.account_id}' FOR UPDATE; "
            f"SELECT FROM saltern.shares WHERE owner_account = '{self.person.account_id}' FOR UPDATE"
        )
        with HeldLock(scene.stage.owner, locked):
            await scene.crowd(self.connections, manager, ramp=0.1)
