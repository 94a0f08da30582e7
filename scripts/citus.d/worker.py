"""Kills a worker of the cluster, and looks what becomes of the accounts on it and of all others. Called by scripts/citus.

While it is gone: accounts on other nodes read and write as ever, those on it are told 503, and the service says that it is
degraded. When it is back, everything is well without anybody's help.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from traffic.blocking import BlockingConnection
from traffic.database import Database
from traffic.people import ITERATIONS, fresh_id, item, password_key
from traffic.wire import Target, request

PEOPLE = 16


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

    def write(self) -> int:
        data = request("PUT", f"/v1/items/{fresh_id()}", item(64), self.token, {"If-None-Match": "*"})
        return self.connection.exchange(data).status

    def read(self) -> int:
        return self.connection.exchange(request("GET", "/v1/account", token=self.token)).status


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
    people = [Person(target) for _ in range(PEOPLE)]
    on_node = set(
        database.run(
            "SELECT a.account_id FROM (SELECT account_id FROM saltern.accounts OFFSET 0) a"
            " JOIN pg_dist_placement p"
            " ON p.shardid = get_shard_id_for_distribution_column('saltern.accounts', a.account_id)"
            f" JOIN pg_dist_node n ON n.groupid = p.groupid WHERE n.nodeport = {node}"
        ).split()
    )
    gone = [person for person in people if person.id in on_node]
    others = [person for person in people if person.id not in on_node]
    assert gone and others, (len(gone), len(others))
    wait_until(30, lambda: status(asking) == "ready", "the service to be ready")
    os.kill(process, signal.SIGKILL)
    try:
        wait_until(30, lambda: status(asking) == "degraded", f"the service to be degraded, which is {status(asking)}")
        for _ in range(3):
            wrong = {(person.read(), person.write()) for person in others} - {(200, 201)}
            assert not wrong, f"accounts on other nodes are told {wrong}"
        refused = {(person.read(), person.write()) for person in gone}
        assert refused == {(503, 503)}, f"accounts on the node that is gone are told {refused}"
    finally:
        # What was killed leaves sessions behind, which have to end before a new one may use the data.
        wait_until(60, lambda: starts(options.start), "the worker to start again")
    started = time.monotonic()
    wait_until(60, lambda: status(asking) == "ready", "the service to be ready again")
    wait_until(60, lambda: all(p.read() == 200 and p.write() == 201 for p in people), "everybody to be served again")
    print(f"{len(gone)} of {PEOPLE} accounts were without their node; healed {time.monotonic() - started:.1f} s after it was back")


main()
