"""The well-behaved client: a process of its own that asks at a modest, steady rate.

The loop is open: each request has a moment at which it is due, and its latency counts from then, so that a server that
stands still is seen by every request that it keeps waiting, and not only by those that were under way.
"""

import asyncio
import heapq
import itertools
import multiprocessing
import os
import random
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any, TextIO

from samples import NO_REPLY, RULER, Sample
from traffic.people import ITERATIONS, Person, item, password_key
from traffic.wire import Connection, ConnectionEnded, Reply, Target, loopback, request

# Requests a second of each kind.
RATES = {
    "read": 24.0,
    "changes": 10.0,
    "write": 20.0,
    "large-write": 2.0,
    "log-in": 6.0,
    "credential": 1.5,
    "view": 5.0,
    "connect": 4.0,
}
PATIENCE = 20.0
# Connections that are kept for the next request; and where they come from, as different people do.
IDLE_CONNECTIONS = 32
BLOCK = 10
ADDRESSES = 20
RULER_STEP = 0.02


@dataclass(frozen=True)
class Household:
    """The accounts of the well-behaved, with an item and a large item each."""

    people: list[Person]
    items: list[str]
    large_items: list[str]
    share_id: str
    #: The client that changes passwords: a change ends the other sessions.
    changers: list[Person]


class Life:
    """What happens in the process."""

    def __init__(self, target: Target, household: Household, output: TextIO):
        self.target = target
        self.household = household
        self.output = output
        self.idle: list[Connection] = []
        self.pending: dict[int, float] = {}
        self.numbers = itertools.count()
        self.small = item(1024)
        self.large = item(80 * 1024)
        self.changers = [Changer(person) for person in household.changers]

    async def live(self, active: Event, over: Event) -> None:
        now = time.monotonic()
        schedule = [(now + random.random() / rate, kind) for kind, rate in RATES.items()]
        schedule.append((now, RULER))
        heapq.heapify(schedule)
        tasks: set[asyncio.Task[None]] = set()
        while not over.is_set():
            due, kind = heapq.heappop(schedule)
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            if kind == RULER:
                self.note(Sample(due, time.monotonic() - due, RULER, 200, True))
                heapq.heappush(schedule, (due + RULER_STEP, RULER))
                continue
            heapq.heappush(schedule, (due + 1 / RATES[kind], kind))
            if active.is_set():
                task = asyncio.create_task(self.ask(kind, due))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()

    def note(self, sample: Sample) -> None:
        """One line a sample; a line of the ruler is followed by the oldest request that is not answered."""
        self.output.write(sample.line())
        if sample.kind == RULER:
            self.output.write(f"oldest {min(self.pending.values(), default=sample.due):.6f}\n")
            self.output.flush()

    async def ask(self, kind: str, due: float) -> None:
        number = next(self.numbers)
        self.pending[number] = due
        status, expected = NO_REPLY, False
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await self.send(kind, number)
            status = reply.status
            expected = status in (200, 201)
        except (OSError, ssl.SSLError, ConnectionEnded, TimeoutError, ValueError):
            pass
        finally:
            del self.pending[number]
        self.note(Sample(due, time.monotonic() - due, kind, status, expected))

    async def send(self, kind: str, number: int) -> Reply:
        index = number % len(self.household.people)
        person = self.household.people[index]
        match kind:
            case "read":
                return await self.exchange(
                    request("GET", f"/v1/items/{self.household.items[index]}", token=person.token)
                )
            case "changes":
                return await self.exchange(request("GET", "/v1/changes?limit=1", token=person.token))
            case "write":
                return await self.write(person, self.household.items[index], self.small)
            case "large-write":
                return await self.write(person, self.household.large_items[index], self.large)
            case "log-in":
                return await self.exchange(person.log_in())
            case "credential":
                return await self.changers[number % len(self.changers)].change(self.exchange)
            case "view":
                return await self.exchange(request("GET", f"/v1/shares/{self.household.share_id}"))
            case "connect":
                return await self.exchange(request("GET", "/v1/service"), fresh=True)
        raise ValueError(kind)

    async def write(self, person: Person, item_id: str, content: dict[str, Any]) -> Reply:
        return await self.exchange(request("PUT", f"/v1/items/{item_id}", content, person.token, {"If-Match": "*"}))

    async def exchange(self, data: bytes, fresh: bool = False) -> Reply:
        connection = None if fresh else self.take()
        if connection is None:
            connection = await Connection.open(self.target, loopback(BLOCK, next(self.numbers) % ADDRESSES))
        try:
            reply = await connection.exchange(data)
        except BaseException:
            connection.close()
            raise
        if fresh or reply.closes or len(self.idle) >= IDLE_CONNECTIONS:
            connection.close()
        else:
            self.idle.append(connection)
        return reply

    def take(self) -> Connection | None:
        """A connection that waits for its next request; the server may have ended those that waited too long."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.reader.at_eof():
                return connection
            connection.close()
        return None


class Changer:
    """Somebody who changes the password again and again. What was not acknowledged is sent again as it was."""

    def __init__(self, person: Person):
        self.person = person
        self.turn = asyncio.Lock()
        self.next_key = password_key()

    async def change(self, exchange: Callable[[bytes], Any]) -> Reply:
        async with self.turn:
            body = {
                "currentPasswordKey": self.person.key,
                "passwordKey": self.next_key,
                "kdf": {"iterations": ITERATIONS},
            }
            reply: Reply = await exchange(request("PUT", "/v1/account/credential", body, self.person.token))
            if reply.status == 200:
                self.person.key, self.next_key = self.next_key, password_key()
            return reply


def _process(target: Target, household: Household, path: str, active: Event, over: Event) -> None:
    try:
        os.nice(-5)
    except PermissionError:
        pass
    with open(path, "w", encoding="ascii") as output:
        asyncio.run(Life(target, household, output).live(active, over))


class Neighbour:
    """The process, seen from the one that judges."""

    def __init__(self, target: Target, household: Household, path: str):
        context = multiprocessing.get_context("spawn")
        self.active, self.over = context.Event(), context.Event()
        self.path = path
        self.process = context.Process(
            target=_process, args=(target, household, path, self.active, self.over), daemon=True
        )
        self.samples: list[Sample] = []
        self.oldest = 0.0
        self.rest = ""

    def start(self) -> None:
        self.process.start()
        while not os.path.exists(self.path):
            time.sleep(0.02)
        # It is read as it grows, for as long as this object lives.
        self.file = open(self.path, encoding="ascii")  # noqa: SIM115
        self.active.set()

    def stop(self) -> None:
        self.over.set()
        self.process.join(5)
        self.file.close()

    def read(self) -> None:
        """Takes over what was measured since the last call."""
        if not self.process.is_alive():
            raise RuntimeError("the well-behaved client has ended")
        *lines, self.rest = (self.rest + self.file.read()).split("\n")
        for line in lines:
            if line.startswith("oldest"):
                self.oldest = float(line.split()[1])
            else:
                self.samples.append(Sample.parse(line))

    def between(self, start: float, end: float) -> list[Sample]:
        """All requests that were due in this time. Waits until each of them has come to its end."""
        deadline = time.monotonic() + PATIENCE + 10
        self.read()
        while self.oldest < end:
            if time.monotonic() > deadline:
                raise RuntimeError("the well-behaved client measures no more")
            time.sleep(0.05)
            self.read()
        chosen = [sample for sample in self.samples if start <= sample.due < end]
        self.samples = [sample for sample in self.samples if sample.due >= end]
        return chosen

    def rest_until_quiet(self) -> None:
        """Lets it ask nothing until resume()."""
        self.active.clear()
        self.between(0, time.monotonic() + 0.2)

    def resume(self) -> None:
        self.active.set()
