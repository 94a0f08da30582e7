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
from statistics import median
from urllib.parse import quote

from breakages import Breakage, World
from processes import Recipe, Supervised, family, signal_all, wait_until
from writer import Writer

from traffic.database import Database
from traffic.wire import loopback

# How long the server may take in each round to take writes again, once the standby is promoted. With a server that does not
# look for the new primary it is 20 to 90 s.
PATIENCE = 12.0
# And in the middle one of its rounds, on a machine on which a new psql has written to the new primary within CALM. Where that
# takes longer, by as much longer may the server take.
AIM = 3.0
CALM = 0.2
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
    #: By a psql that is told where it is: what is the machine's doing.
    psql: float


class Failover(Breakage):
    def __init__(self) -> None:
        #: Of the rounds so far.
        self.takeovers: list[Takeover] = []

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
        # Nobody starts it again: it is fenced off.
        world.postgres.is_over.set()
        self.lose(world)
        time.sleep(dice.uniform(0, 3))
        self.pair.superuser.run("SELECT pg_promote()")
        promoted = time.monotonic()
        world.superuser = self.pair.superuser
        takeover = Takeover(0, 0)

        def write_with_psql() -> None:
            self.pair.superuser.run("SELECT pg_logical_emit_message(true, 'chaos', 'a write')")
            takeover.psql = time.monotonic() - promoted

        def takes_writes() -> bool:
            # A new one each time: who has failed to register too often does not go on.
            probe = Writer(world.target, loopback(70, 201), 201)
            probe.connection.patience = 3
            probe.write()
            probe.connection.close()
            return probe.acknowledged > 0

        psql = threading.Thread(target=write_with_psql, daemon=True)
        psql.start()
        wait_until(5 * PATIENCE, takes_writes, "the server to take writes at the new primary")
        took = takeover.server = time.monotonic() - promoted
        psql.join(300)
        self.takeovers.append(takeover)
        self.note = f"took writes {took:.1f} s after the promotion, psql {takeover.psql:.2f} s"
        if took > PATIENCE:
            raise TimeoutError(f"the server took writes {took:.1f} s after the promotion, and not within {PATIENCE:.0f} s")

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
    """What is wrong with how long the server took, over all rounds: one that was held up says nothing. Of breakages with a
    round or two they are taken together."""
    groups: dict[str, list[Takeover]] = {}
    for breakage in breakages:
        if isinstance(breakage, Failover) and breakage.takeovers:
            name = breakage.name if len(breakage.takeovers) > 2 else "failovers"
            groups.setdefault(name, []).extend(breakage.takeovers)
    complaints = []
    for name, takeovers in groups.items():
        server = median(takeover.server for takeover in takeovers)
        psql = median(takeover.psql for takeover in takeovers)
        bound = min(AIM * max(1.0, psql / CALM), PATIENCE)
        text = (
            f"{name}: in the middle one of {len(takeovers)} rounds the server took writes {server:.1f} s after the "
            f"promotion, and psql {psql:.2f} s; bound {bound:.1f} s"
        )
        say(text + ("" if bound == AIM else f", for the machine is {psql / CALM:.1f} times too busy for {AIM:.0f} s"))
        if server > bound:
            complaints.append(text)
    return complaints


def setting(words: list[str], name: str) -> str:
    return next(word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}="))
