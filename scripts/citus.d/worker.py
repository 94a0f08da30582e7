"""Kills a worker of the cluster, and looks what becomes of the accounts on it and of all others. Called by scripts/citus.

From the kill on accounts on other nodes read and write as ever, while those on it ask as well and are told 503; the service
says that it is degraded, and the streams of others hear of what they write. Log-ins and shares lie by keys of their own:
nobody logs in whose log-in is on it, and no share is opened that is on it; all else is answered or 503. When it is back,
everything is well without anybody's help.
"""

import argparse
import json
import os
import shlex
import signal
import string
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from traffic.blocking import BlockingConnection
from traffic.database import Database
from traffic.people import ITERATIONS, fresh_id, item, password_key, share
from traffic.ruler import Ruler
from traffic.wire import Target, request

PEOPLE = 16
# Seconds that no reply to an account on another node may take, beside the machine's lateness. With nothing else to do it is a
# tenth of one.
LONGEST = 5.0
# A write that was in one transaction with another account's, which the kill has cut off, may have been refused until then.
CUT_OFF = 1.0
# How many replies each of them has to have after the kill.
LEAST = 10
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def wait_until(seconds: float, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


class Person:
    def __init__(self, target: Target):
        self.connection = BlockingConnection(target)
        self.key, self.userid = password_key(), f"worker-{fresh_id()}@example.org"
        body = {"userid": self.userid, "passwordKey": self.key, "kdf": {"iterations": ITERATIONS}}
        reply = self.connection.exchange(request("POST", "/v1/accounts", body))
        assert reply.status == 201, (reply.status, reply.body)
        self.id, self.token = reply.json["accountId"], reply.json["session"]["token"]
        self.share = self.connection.exchange(request("POST", "/v1/shares", share(64), self.token)).json["id"]
        self.stream = BlockingConnection(target)
        assert self.stream.exchange(request("GET", "/v1/changes/stream", token=self.token), has_body=False).status == 200
        self.stream.until(b"event: change")
        #: Of its last write, and of the last event of its stream.
        self.revision = self.heard = 0

    @property
    def share_key(self) -> str:
        """As the table has it."""
        number = 0
        for character in self.share:
            number = number * 62 + DIGITS.index(character)
        return f"{number:032x}"

    def hears(self) -> bool:
        """Whether its stream tells of what it has written last."""
        assert self.stream.tls
        deadline = time.monotonic() + 180
        try:
            while self.heard < self.revision:
                # Lines that keep the stream alive continue.
                self.stream.tls.settimeout(max(0.01, deadline - time.monotonic()))
                line = self.stream.until(b"\n")
                if line.startswith(b"data: "):
                    self.heard = json.loads(line.removeprefix(b"data: "))["revision"]
            return True
        except TimeoutError:
            return False

    def log_in(self) -> int:
        return self.connection.exchange(
            request("POST", "/v1/sessions", {"userid": self.userid, "passwordKey": self.key})
        ).status

    def open_share(self) -> int:
        return self.connection.exchange(request("GET", f"/v1/shares/{self.share}")).status

    def make_share(self) -> int:
        return self.connection.exchange(request("POST", "/v1/shares", share(64), self.token)).status

    def write(self) -> int:
        data = request("PUT", f"/v1/items/{fresh_id()}", item(64), self.token, {"If-None-Match": "*"})
        reply = self.connection.exchange(data)
        if reply.status == 201:
            self.revision = reply.json["revision"]
        return reply.status

    def read(self) -> int:
        return self.connection.exchange(request("GET", "/v1/account", token=self.token)).status


@dataclass
class Told:
    status: int
    #: Seconds, on a clock that starts anywhere.
    asked: float
    answered: float


class Watch:
    """Somebody who reads and writes on and on, beside all others."""

    def __init__(self, person: Person):
        self.person = person
        self.told: list[Told] = []
        self.error: Exception | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        # Every error is reported: a thread that ends by an error does not end the others.
        try:
            while not self.over.is_set():
                for act in (self.person.read, self.person.write):
                    asked = time.monotonic()
                    self.told.append(Told(act(), asked, time.monotonic()))
                self.over.wait(0.05)
        except Exception as error:
            self.error = error

    def end(self) -> None:
        self.over.set()
        self.thread.join(180)
        assert not self.thread.is_alive() and not self.error, f"somebody who asks on and on has ended with {self.error!r}"

    def since(self, moment: float) -> list[Told]:
        """Those that were answered after it."""
        return [told for told in self.told if told.answered > moment]


def wait_for_degraded(asking: BlockingConnection, watches: list[Watch], killed: float) -> None:
    """Until the service says it, and everybody was told enough since the kill."""
    wait_until(180, lambda: status(asking) == "degraded", f"the service to be degraded, which is {status(asking)}")
    print(f"degraded {time.monotonic() - killed:.1f} s after the kill")
    wait_until(180, lambda: all(w.error or len(w.since(killed)) >= LEAST for w in watches), "everybody to be answered")
    for watch in watches:
        watch.end()


def judge(watches: list[Watch], others: list[Person], killed: float, ruler: Ruler) -> None:
    """What those who asked on and on were told, whose node is there and whose is not."""
    slowest, asked, refused = 0.0, 0, 0
    cut_off = killed + CUT_OFF + ruler.between(killed, killed + CUT_OFF)
    for watch in watches:
        told = watch.since(killed)
        assert {one.status for one in told} <= {200, 201, 503}, f"an account is told {Counter(one.status for one in told)}"
        if watch.person not in others:
            continue
        failed = [one for one in told if one.status == 503]
        assert len(failed) <= 1 and all(one.asked < cut_off for one in failed), (
            f"an account on another node is told 503 {len(failed)} times of {len(told)}, the last time "
            f"{failed[-1].asked - killed:.1f} s after the kill"
        )
        slowest = max(slowest, *(one.answered - one.asked - ruler.between(one.asked, one.answered) for one in told))
        asked, refused = asked + len(told), refused + len(failed)
    assert slowest < LONGEST, f"a reply to an account on another node took {slowest:.1f} s"
    print(
        f"{refused} of {asked} requests of accounts on other nodes were refused, and the slowest took {slowest:.2f} s, "
        "without the machine's lateness"
    )


def on_node(database: Database, node: int, table: str, keys: list[str]) -> set[str]:
    """Those keys of the table, as SQL writes them, that are there."""
    listed = ", ".join(f"('{key}')" for key in keys)
    kind = {"accounts": "uuid", "logins": "text", "shares": "bytea"}[table]
    cast = "('\\x' || k)::bytea" if kind == "bytea" else f"k::{kind}"
    return set(
        database.run(
            f"SELECT k FROM (VALUES {listed}) keys (k) JOIN pg_dist_placement p"
            f" ON p.shardid = get_shard_id_for_distribution_column('saltern.{table}', {cast})"
            f" JOIN pg_dist_node n ON n.groupid = p.groupid WHERE n.nodeport = {node}"
        ).split()
    )


def look_elsewhere(others: list[Person], logins: set[str], shares: set[str]) -> None:
    """Log-ins and shares of accounts that have their node, of which some are on the one that is gone."""
    told: dict[str, Counter[int]] = {what: Counter() for what in ["log-ins", "shares opened", "shares made"]}
    for person in others:
        login, opened = person.log_in(), person.open_share()
        # Its failures are counted by another key, which only the server can compute.
        assert login == 503 or (login == 201 and person.userid not in logins), f"a log-in is told {login}"
        expected = 503 if person.share_key in shares else 200
        assert opened == expected, f"a share that is told {opened} instead of {expected}"
        told["log-ins"][login] += 1
        told["shares opened"][opened] += 1
        told["shares made"][person.make_share()] += 1
    for what, counts in told.items():
        assert set(counts) <= {200, 201, 503}, f"{what} are told {counts}"
        print(f"{what} of others: " + ", ".join(f"{count} are told {code}" for code, count in sorted(counts.items())))


def status(connection: BlockingConnection) -> str:
    reply = connection.exchange(request("GET", "/v1/health/ready"))
    return str(reply.json.get("status")) if reply.status == 200 else str(reply.status)


def starts(words: str) -> bool:
    return subprocess.run(shlex.split(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["server", "database", "data", "start"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    port, _, certificate = options.server.partition(":")
    target = Target(int(port), certificate)
    database, asking = Database(options.database), BlockingConnection(target)
    with open(os.path.join(options.data, "postmaster.pid"), encoding="ascii") as file:
        lines = file.read().splitlines()
    process, node = int(lines[0]), int(lines[3])
    people, accounts = [Person(target) for _ in range(PEOPLE)], set()
    # Where an account is, is chance: there are some here and some elsewhere.
    while not 0 < len(accounts) < len(people):
        people.append(Person(target))
        accounts = on_node(database, node, "accounts", [person.id for person in people])
    logins = on_node(database, node, "logins", [person.userid for person in people])
    shares = on_node(database, node, "shares", [person.share_key for person in people])
    gone = [person for person in people if person.id in accounts]
    others = [person for person in people if person.id not in accounts]
    wait_until(180, lambda: status(asking) == "ready", "the service to be ready")
    ruler = Ruler()
    watches = [Watch(person) for person in people]
    wait_until(180, lambda: all(watch.told for watch in watches), "everybody to ask")
    killed = time.monotonic()
    os.kill(process, signal.SIGKILL)
    try:
        wait_for_degraded(asking, watches, killed)
        judge(watches, others, killed, ruler)
        for _ in range(3):
            wrong = {(person.read(), person.write()) for person in others} - {(200, 201)}
            assert not wrong, f"accounts on other nodes are told {wrong}"
        deaf = sum(not person.hears() for person in others)
        assert not deaf, f"the streams of {deaf} of {len(others)} accounts on other nodes hear of nothing"
        look_elsewhere(others, logins, shares)
        refused = {(person.read(), person.write()) for person in gone}
        assert refused == {(503, 503)}, f"accounts on the node that is gone are told {refused}"
    finally:
        # What was killed leaves sessions behind, which have to end before a new one may use the data.
        wait_until(180, lambda: starts(options.start), "the worker to start again")
    started = time.monotonic()
    wait_until(180, lambda: status(asking) == "ready", "the service to be ready again")
    wait_until(180, lambda: all(p.read() == 200 and p.write() == 201 for p in people), "everybody to be served again")
    # Devices without a node receive their own last writes.
    deaf = sum(not person.hears() for person in gone)
    assert not deaf, f"the streams of {deaf} of {len(gone)} accounts that have their node again hear of nothing"
    assert all(person.log_in() == 201 and person.open_share() == 200 for person in people)
    print(f"{len(gone)} of {PEOPLE} accounts were without their node; healed {time.monotonic() - started:.1f} s after it was back")


main()
