"""The ways in which things break. Each breaks something, and heals what only an operator, or time, would heal."""

import contextlib
import os
import random
import signal
import socket
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from processes import Supervised, family, limit_descriptors, signal_all, wait_until

from traffic.database import Database
from traffic.wire import Target

def faked(file: str, library: str = "libfaketimeMT.so.1") -> dict[str, str]:
    """The environment of a program that has the wall clock of the file. The library by default is for several threads."""
    return {
        "LD_PRELOAD": f"/usr/lib/x86_64-linux-gnu/faketime/{library}",
        "FAKETIME_TIMESTAMP_FILE": file,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def wind(file: str, seconds: int) -> None:
    """Turns the clock of the file in one step. Programs of any user read the file each time that they read the clock."""
    with open(file + ".new", "w", encoding="ascii") as opened:
        opened.write(f"{seconds:+d}\n")
    os.chmod(file + ".new", 0o644)
    os.rename(file + ".new", file)


@dataclass
class World:
    """What there is to break."""

    server: Supervised
    postgres: Supervised
    superuser: Database
    target: Target
    #: A folder on the small disk of the database; empty when the disk is not one of ours.
    disk: str
    work: str
    frozen_seconds: float
    #: Whether the network is our own, so that it can be broken.
    has_network: bool


class Breakage(ABC):
    name: ClassVar[str]
    says: ClassVar[str]
    needs_network: ClassVar[bool] = False
    #: Whether people put and delete single items meanwhile, and do nothing else.
    only_items: ClassVar[bool] = False
    #: Its report about the last round.
    note = ""

    def prepare(self, world: World) -> None:
        """Before anybody writes."""

    @abstractmethod
    def happen(self, world: World, dice: random.Random) -> None:
        """Breaks it, for as long as it takes, and heals it."""

    def tidy(self, world: World) -> None:
        """After everybody has looked."""


class Kill(Breakage):
    name = "kill"
    says = "kill -9 of the server"

    def happen(self, world: World, dice: random.Random) -> None:
        for _ in range(dice.randint(1, 2)):
            starts = world.server.starts
            world.server.send(signal.SIGKILL)
            world.server.wait_for_start(starts)
            time.sleep(dice.uniform(0, 1))


class KillInCommit(Breakage):
    name = "commit"
    says = "kill -9 of the server between a group's COMMIT and its answer"
    only_items = True

    # How long requests gather behind a commit that waits: longer than a writer pauses, and much shorter than the second
    # after which a server takes it for one that does not end.
    GATHERING = 0.25
    # Groups are the only transactions of these connections that have a COMMIT: a request that goes alone has none, and
    # what has a connection for itself has it among the leases.
    COMMITS = "usename = 'saltern_app' AND application_name = 'saltern commits' AND wait_event = 'SyncRep'"

    def prepare(self, world: World) -> None:
        # One connection for all of them: requests that are not sent alone are grouped.
        world.server.restart({"SALTERN_LOOPS": "1", "SALTERN_COMMIT_CONNECTIONS": "1"})

    def happen(self, world: World, dice: random.Random) -> None:
        sizes: list[int] = []
        for _ in range(3):
            wait_until(600, lambda: self.kill_in_commit(world, sizes), "a group whose commit waits")
            time.sleep(dice.uniform(1, 2))
        self.note = f"killed groups wrote {', '.join(map(str, sizes))} items"

    def tidy(self, world: World) -> None:
        world.server.restart({})

    def kill_in_commit(self, world: World, sizes: list[int]) -> bool:
        """Whether there was a group of at least two requests. On a slow machine chance may bring one alone."""
        starts = world.server.starts
        try:
            group = self.wait_for_group(world)
            if group:
                world.server.send(signal.SIGKILL)
        finally:
            self.wait_for_standby(world, "")
        wait_until(180, lambda: self.waiting(world) == 0, "the commit that waited to end")
        if not group:
            return False
        # Each request has written one item, and each writer has its own account.
        size = world.superuser.number(f"SELECT count(*) FROM saltern.items WHERE xmin = '{group}'::xid")
        world.server.wait_for_start(starts)
        if size > 1:
            sizes.append(size)
        return size > 1

    def wait_for_standby(self, world: World, name: str) -> None:
        world.superuser.run(self.standby(name))

    def standby(self, name: str) -> str:
        return f"ALTER SYSTEM SET synchronous_standby_names = '{name}'; SELECT pg_reload_conf();"

    def wait_for_group(self, world: World) -> int:
        """The transaction of a group whose COMMIT waits; 0 when there is none.

        One session does all of it: starts of programs would take a part of the second. Commits wait for a missing standby:
        commits on this disk are not acknowledged. The first one is of a request that was sent alone, or of a group. In the
        first case others queue, and are sent together when it is released.
        """
        group = f"FROM pg_stat_activity WHERE {self.COMMITS} AND query = 'COMMIT'"
        said = world.superuser.run(
            f"""{self.standby("nobody")}
            DO $$
            DECLARE
                deadline timestamptz := clock_timestamp() + interval '180 seconds';
            BEGIN
                WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE {self.COMMITS}) LOOP
                    IF clock_timestamp() > deadline THEN RAISE 'no commit waits'; END IF;
                    PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
                END LOOP;
                IF NOT EXISTS (SELECT {group}) THEN
                    PERFORM pg_sleep({self.GATHERING}), pg_stat_clear_snapshot();
                    PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE {self.COMMITS};
                    deadline := clock_timestamp() + interval '5 seconds';
                    WHILE clock_timestamp() < deadline AND NOT EXISTS (SELECT {group}) LOOP
                        PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
                    END LOOP;
                END IF;
            END $$;
            SELECT coalesce(max(backend_xid::text::bigint), 0) {group};"""
        )
        return int(said.splitlines()[-1])

    def waiting(self, world: World) -> int:
        """Connections for commits that wait for one to end."""
        return world.superuser.number(f"SELECT count(*) FROM pg_stat_activity WHERE {self.COMMITS}")


class Crash(Breakage):
    name = "crash"
    says = "pg_ctl stop -m immediate"

    def happen(self, world: World, dice: random.Random) -> None:
        # SIGQUIT is what pg_ctl sends for it: no checkpoint, recovery from the log at the next start.
        starts = world.postgres.starts
        world.postgres.send(signal.SIGQUIT)
        world.postgres.wait_for_start(starts)


class Freeze(Breakage):
    name = "freeze"
    says = "SIGSTOP of PostgreSQL"

    def happen(self, world: World, dice: random.Random) -> None:
        stopped = family(world.postgres.pid)
        signal_all(stopped, signal.SIGSTOP)
        try:
            time.sleep(world.frozen_seconds)
        finally:
            signal_all(stopped, signal.SIGCONT)


class FullDisk(Breakage):
    name = "full"
    says = "no room on PostgreSQL's disk"

    def happen(self, world: World, dice: random.Random) -> None:
        filler = os.path.join(world.disk, "filler")
        try:
            until = time.monotonic() + dice.uniform(3, 5)
            with open(filler, "wb", buffering=0) as file:
                while time.monotonic() < until:
                    # Again and again: PostgreSQL frees some when it removes old log files.
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(bytes(1 << 16))
                    with contextlib.suppress(RuntimeError):
                        world.superuser.run("CHECKPOINT")
                    time.sleep(0.2)
        finally:
            os.unlink(filler)


class FewDescriptors(Breakage):
    name = "descriptors"
    says = "too few descriptors for the server, with clients and PostgreSQL asking for more"

    def happen(self, world: World, dice: random.Random) -> None:
        server = world.server.pid
        # Fewer than are open: those stay, and there is not one more.
        before = limit_descriptors(server, dice.randint(8, 16))
        guests: list[socket.socket] = []
        try:
            for _ in range(60):
                with contextlib.suppress(OSError):
                    guests.append(socket.create_connection(("127.0.0.1", world.target.port), 1))
            world.superuser.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'saltern_app'")
            time.sleep(dice.uniform(2, 4))
        finally:
            for guest in guests:
                guest.close()
            limit_descriptors(server, before)


class Clock(Breakage):
    name = "clock"
    says = "the server's clock jumps, by up to six hours"

    def prepare(self, world: World) -> None:
        self.turn(world, 0)
        world.server.restart(faked(self.file(world)))

    def happen(self, world: World, dice: random.Random) -> None:
        for _ in range(4):
            self.turn(world, dice.choice([-1, 1]) * dice.choice([20, 120, 900, 3_600, 21_600]))
            time.sleep(dice.uniform(0.5, 1.2))
        self.turn(world, 0)

    def tidy(self, world: World) -> None:
        world.server.restart({})

    def turn(self, world: World, seconds: int) -> None:
        wind(self.file(world), seconds)

    def file(self, world: World) -> str:
        return os.path.join(world.work, "clock")
