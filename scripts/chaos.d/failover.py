"""A primary that is gone, and a standby that is promoted in its place, as a cluster manager would do it."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from breakages import Breakage, World
from processes import Recipe, Supervised, family, signal_all, wait_until
from writer import Writer

from traffic.database import Database
from traffic.ruler import DISTURBED, Ruler
from traffic.wire import loopback

# Maximum time until the server accepts writes again after a promotion. A server that does not search for the new primary
# takes 20 to 90 s.
PATIENCE = 12.0
# Also the maximum in half of the rounds of each kind. For both a psql that writes to the new primary directly, and the lateness of
# the machine, are added: that time is not due to the server.
AIM = 3.0
# How many rounds more a kind may have for it, and for rounds that are not judged because the machine was late: a machine that
# holds up one round seldom holds up all of them, and a server that is always too slow is so in each.
MORE_ROUNDS = 3
PORTS = (5432, 5433)


class Pair:
    """The world's PostgreSQL and a synchronous standby of it."""

    def __init__(self, world: World):
        words = world.postgres.recipe.words
        program = next(index for index, word in enumerate(words) if word.endswith("/postgres"))
        self.become, self.folder = words[:program], os.path.dirname(words[program])
        self.primary = words[words.index("-D") + 1]
        self.primary_sockets = setting(words, "unix_socket_directories")
        self.place = os.path.join(world.work, "standby")
        self.sockets = os.path.join(world.work, "standby-sockets")
        self.owner = os.stat(self.primary).st_uid, os.stat(self.primary).st_gid
        for path in (self.place, self.sockets):
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path, 0o700)
            os.chown(path, *self.owner)
        self.run(
            "pg_basebackup", "--pgdata", self.place, "--write-recovery-conf", "--checkpoint", "fast", "--wal-method",
            "stream", "--dbname", f"postgresql://postgres@{self.host(world, 0)}/postgres",
        )  # fmt: skip
        own = [word.replace(self.primary_sockets, self.sockets).replace(self.primary, self.place) for word in words]
        self.standby = Supervised(Recipe([*own, "-c", f"port={PORTS[1]}"], os.path.join(world.work, "standby.log")))
        self.superuser = Database(f"postgresql://postgres@{quote(self.sockets, '')}:{PORTS[1]}/saltern")
        world.superuser.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        world.superuser.run("SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(180, lambda: world.superuser.number(synchronous) == 1, "the standby to be in sync")
        hosts = ",".join(self.host(world, number) for number in range(2))
        self.url = f"postgresql://saltern_app@{hosts}/saltern?target_session_attrs=read-write"

    def host(self, world: World, number: int) -> str:
        if world.has_network:
            return f"127.0.0.1:{PORTS[number]}"
        return f"{quote((self.primary_sockets, self.sockets)[number], '')}:{PORTS[number]}"

    def run(self, name: str, *arguments: str) -> None:
        subprocess.run([*self.become, os.path.join(self.folder, name), *arguments], cwd="/", check=True)

    def end(self, world: World) -> None:
        """The data of the new primary goes where the old one was, and that is started again."""
        self.standby.end(signal.SIGINT)
        for name in os.listdir(self.primary):
            path = os.path.join(self.primary, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        subprocess.run(["cp", "--archive", "--", f"{self.place}/.", self.primary], check=True)
        world.postgres = Supervised(world.postgres.recipe)


@dataclass
class Takeover:
    """Seconds from the promotion to the first write."""

    #: Through the server, which has to find the new primary.
    server: float
    #: The time of a psql that connects to it directly: the machine's share.
    psql: float
    #: By how much the machine was late meanwhile.
    late: float

    def is_within(self, limit: float) -> bool:
        return self.server <= limit + self.psql + self.late

    @property
    def is_quick(self) -> bool:
        return self.is_within(AIM)


class Failover(Breakage):
    def __init__(self) -> None:
        #: Of the rounds that are judged.
        self.takeovers: list[Takeover] = []
        #: Rounds that are not judged, and not yet repeated.
        self.disturbed = 0
        self.ruler = Ruler()

    @property
    def is_quick(self) -> bool:
        """Whether half of its rounds were quick."""
        return 2 * sum(takeover.is_quick for takeover in self.takeovers) >= len(self.takeovers)

    @property
    def wants_more(self) -> bool:
        return not self.is_quick or self.disturbed > 0

    def prepare(self, world: World) -> None:
        self.pair = Pair(world)
        self.primary = world.superuser
        world.server.restart({"SALTERN_DATABASE_URL": self.pair.url, "SALTERN_FAILOVER": "synchronous"})

    @abstractmethod
    def lose(self, world: World) -> None:
        """The primary is gone."""

    def heal(self, world: World) -> None:
        """What is not healed by an end of the process."""

    def happen(self, world: World, dice: random.Random) -> None:
        # It is not started again: it is fenced off.
        world.postgres.is_over.set()
        self.lose(world)
        time.sleep(dice.uniform(0, 3))
        self.pair.superuser.run("SELECT pg_promote()")
        promoted = time.monotonic()
        world.superuser = self.pair.superuser
        takeover = Takeover(0, 0, 0)

        def write_with_psql() -> None:
            self.pair.superuser.run("SELECT pg_logical_emit_message(true, 'chaos', 'a write')")
            takeover.psql = time.monotonic() - promoted

        def takes_writes() -> bool:
            # A new one each time: too many failed registrations would be rejected.
            probe = Writer(world.target, loopback(70, 201), 201)
            probe.connection.patience = 3 if time.monotonic() - promoted < PATIENCE else 60
            probe.write()
            probe.connection.close()
            return probe.acknowledged > 0

        psql = threading.Thread(target=write_with_psql, daemon=True)
        psql.start()
        wait_until(25 * PATIENCE, takes_writes, "the server to take writes at the new primary")
        took = takeover.server = time.monotonic() - promoted
        psql.join(300)
        takeover.late = self.ruler.between(promoted, promoted + took)
        self.note = (
            f"took writes {took:.1f} s after the promotion, psql {takeover.psql:.2f} s, the machine late by {takeover.late:.1f} s"
        )
        self.add(takeover)

    def add(self, takeover: Takeover) -> None:
        # A long takeover contains many short latenesses. Only those of a quarter of it can be the cause.
        if takeover.late > max(DISTURBED, takeover.server / 4) and not takeover.is_quick:
            self.disturbed += 1
            self.note += ": not judged"
            return
        self.disturbed = max(0, self.disturbed - 1)
        self.takeovers.append(takeover)
        if not takeover.is_within(PATIENCE):
            raise TimeoutError(
                f"the server took writes {takeover.server:.1f} s after the promotion, and not within {PATIENCE:.0f} s, with "
                f"psql after {takeover.psql:.1f} s and the machine late by {takeover.late:.1f} s"
            )

    def tidy(self, world: World) -> None:
        signal_all(family(world.postgres.pid), signal.SIGKILL)
        world.postgres.process.wait(120)
        self.heal(world)
        self.pair.end(world)
        world.superuser = self.primary
        world.server.restart({})


class LosePrimary(Failover):
    name = "lose-primary"
    says = "kill -9 of the primary, and its standby is promoted"

    def lose(self, world: World) -> None:
        signal_all(family(world.postgres.pid), signal.SIGKILL)


class FreezePrimary(Failover):
    name = "freeze-primary"
    says = "SIGSTOP of the primary, and its standby is promoted"

    def lose(self, world: World) -> None:
        signal_all(family(world.postgres.pid), signal.SIGSTOP)


class SwallowPackets(Failover):
    name = "swallow"
    says = "the network loses every packet to and from the primary, and its standby is promoted"
    needs_network = True

    def lose(self, world: World) -> None:
        self.rules("--append")

    def heal(self, world: World) -> None:
        self.rules("--delete")

    def rules(self, act: str) -> None:
        for port in ("--destination-port", "--source-port"):
            subprocess.run(
                ["iptables", "--wait", act, "INPUT", "--protocol", "tcp", port, str(PORTS[0]), "--jump", "DROP"],
                check=True,
            )


def judge(breakages: list[Breakage], say: Callable[[str], None]) -> list[str]:
    """What is wrong with how long the server took, of each kind by itself."""
    complaints = []
    for breakage in breakages:
        if not isinstance(breakage, Failover):
            continue
        if not breakage.takeovers:
            if breakage.disturbed:
                complaints.append(f"{breakage.name}: the machine was late in all of {breakage.disturbed} rounds")
            continue
        quick = sum(takeover.is_quick for takeover in breakage.takeovers)
        text = (
            f"{breakage.name}: in {quick} of {len(breakage.takeovers)} rounds the server took writes at most "
            f"{AIM:.0f} s later than psql and a late machine"
        )
        say(text)
        if not breakage.is_quick:
            complaints.append(text)
    return complaints


def setting(words: list[str], name: str) -> str:
    return next(word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}="))
