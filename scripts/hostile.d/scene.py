"""Where an attack takes place: its process, its clock, its many connections."""

import asyncio
import contextlib
import multiprocessing
import os
import ssl
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from typing import ClassVar

from traffic.database import Database
from traffic.wire import Connection, ConnectionEnded, ReluctantConnection, Reply, Target, loopback

# What a connection pauses for after the server has closed it.
REFUSED_PAUSE = 0.5
TROUBLE = (OSError, ssl.SSLError, ConnectionEnded, TimeoutError)


@dataclass(frozen=True)
class Stage:
    """What attacks are carried out against."""

    target: Target
    owner_url: str

    @property
    def owner(self) -> Database:
        return Database(self.owner_url)

    def postmasters(self) -> list[int]:
        """The process that the server's database descends from."""
        folder = self.superuser.run("SHOW data_directory")
        with open(os.path.join(folder, "postmaster.pid"), encoding="ascii") as file:
            return [int(file.readline())]

    @property
    def superuser(self) -> Database:
        return Database(self.owner_url.replace("saltern_owner@", "postgres@"))


@dataclass
class Scene:
    """One performance: what the attackers saw is counted, so that an attack that did not take place is noticed."""

    stage: Stage
    stop: Event
    in_place: Event
    wanted: int
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        return self.stop.is_set()

    def connected(self) -> None:
        self.counts["connections"] += 1
        if self.counts["connections"] == self.wanted:
            self.in_place.set()

    def saw(self, reply: Reply) -> Reply:
        self.counts[str(reply.status)] += 1
        return reply

    async def crowd(self, count: int, act: Callable[[int], Awaitable[None]], ramp: float = 1.0) -> None:
        """So many at once, who begin within `ramp` seconds and do it again and again until the attack is over."""

        async def one(number: int) -> None:
            await asyncio.sleep(ramp * number / count)
            while not self.over:
                try:
                    await act(number)
                except TROUBLE:
                    self.counts["closed"] += 1
                    await asyncio.sleep(REFUSED_PAUSE)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(one(number))

    @contextlib.asynccontextmanager
    async def connection(self, block: int, number: int) -> AsyncIterator[Connection]:
        """A connection from one of the attackers' addresses."""
        connection = await Connection.open(self.stage.target, loopback(block, number))
        self.connected()
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.asynccontextmanager
    async def reluctant_connection(self, block: int, number: int) -> AsyncIterator[ReluctantConnection]:
        """One that takes nothing from its socket by itself, and lets the kernel keep little for it."""
        connection = await ReluctantConnection.open(self.stage.target, loopback(block, number))
        self.connected()
        try:
            yield connection
        finally:
            connection.close()


class Attack(ABC):
    """Something that must not hurt the neighbours. What `prepare` sets is handed to the process that attacks."""

    name: ClassVar[str]
    says: ClassVar[str]
    #: How many there are at once.
    connections: ClassVar[int]
    #: Also when there are three minutes for all.
    is_quick: ClassVar[bool] = True
    #: It takes so long to be what it is.
    least_seconds: ClassVar[float] = 0.0
    #: It needs new connections of the server to the database, and this time before the neighbours continue.
    head_start: ClassVar[float | None] = None
    #: It changes the result of `prepare`, which must run again before a repetition.
    is_spent: ClassVar[bool] = False

    async def prepare(self, stage: Stage) -> None:
        """Makes what it needs, before anything is measured."""

    @abstractmethod
    async def run(self, scene: Scene) -> None:
        """Attacks until the scene is over."""

    def took_place(self, counts: Counter[str]) -> bool:
        """Whether it was an attack at all."""
        return counts["connections"] >= self.connections

    def objection(self, counts: Counter[str]) -> str | None:
        """What the attackers achieved and should not have."""
        return None


def _process(
    attack: Attack, stage: Stage, begun: Event, in_place: Event, stop: Event, seconds: float, results: Pipe
) -> None:
    # The attackers shall not win by taking the processor from those who are measured; but where others take it, they
    # need some of it to be attackers at all.
    os.nice(10)
    scene = Scene(stage, stop, in_place, attack.connections)

    async def perform() -> None:
        begun.set()
        task = asyncio.create_task(attack.run(scene))
        deadline = time.monotonic() + seconds + 60
        while not task.done() and not scene.over and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        failure = task.exception() if task.done() else None
        task.cancel()
        await asyncio.wait([task], timeout=10)
        if failure is not None:
            raise failure

    try:
        asyncio.run(perform())
        results.send((scene.counts, None))
    except Exception as error:  # noqa: BLE001  (told to the process that judges)
        results.send((scene.counts, repr(error)))


class Performance:
    """An attack under way in its own process."""

    def __init__(self, attack: Attack, stage: Stage, seconds: float):
        context = multiprocessing.get_context("spawn")
        self.begun, self.in_place, self.over = context.Event(), context.Event(), context.Event()
        self.results, sender = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_process, daemon=True, args=(attack, stage, self.begun, self.in_place, self.over, seconds, sender)
        )
        self.process.start()
        sender.close()
        self.begun.wait(30)

    @property
    def is_in_place(self) -> bool:
        """Whether all connections have been there, or there is nothing to wait for any more."""
        return self.in_place.is_set() or not self.process.is_alive()

    def end(self) -> Counter[str]:
        """Stops it. What the attackers saw."""
        self.over.set()
        try:
            if not self.results.poll(60):
                raise RuntimeError("the attackers do not end")
            counts: Counter[str]
            counts, failure = self.results.recv()
        finally:
            self.process.join(5)
            if self.process.is_alive():
                self.process.kill()
        if failure is not None:
            raise RuntimeError(f"the attack went wrong: {failure}")
        return counts
