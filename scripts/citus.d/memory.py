"""Many reads through a node that has the rows: what its sessions keep in memory may not grow with them.

Called by scripts/citus.
"""

import argparse
import asyncio
import subprocess
import sys

from traffic.people import Person, fresh_id, item, register
from traffic.wire import Connection, Target, loopback, request

PEOPLE = 16
# The most that all sessions together may grow by for one read, in bytes.
ALLOWED = 2_000


class Node:
    """Of the cluster, on this machine."""

    def __init__(self, url: str) -> None:
        self.words = ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", url, "--command"]

    def sessions(self) -> list[int]:
        """The server's."""
        sql = "SELECT pid FROM pg_stat_activity WHERE usename = 'saltern_app' AND datname = 'saltern'"
        return [int(pid) for pid in subprocess.check_output([*self.words, sql], text=True).split()]

    def memory(self) -> int:
        """What they have for themselves, in bytes."""
        total = 0
        for pid in self.sessions():
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                total += sum(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))
        return total


async def read(connection: Connection, person: Person, path: str, times: int) -> None:
    for _ in range(times):
        reply = await connection.exchange(request("GET", path, token=person.token))
        if reply.status != 200:
            raise SystemExit(f"a read is answered {reply.status}")


async def grow(target: Target, node: Node, reads: int) -> int:
    """By how many bytes so many reads make the sessions grow, when all of them have read before."""
    connections = [await Connection.open(target, loopback(70, number)) for number in range(PEOPLE)]
    people = [await register(connection, f"memory{number}") for number, connection in enumerate(connections)]
    path = f"/v1/items/{fresh_id()}"
    for connection, person in zip(connections, people, strict=True):
        made = await connection.exchange(request("PUT", path, item(64), person.token, {"If-None-Match": "*"}))
        if made.status != 201:
            raise SystemExit(f"an item is answered {made.status}")

    async def together(times: int) -> int:
        pairs = zip(connections, people, strict=True)
        await asyncio.gather(*(read(connection, person, path, times) for connection, person in pairs))
        return node.memory()

    before = await together(reads // PEOPLE)
    after = await together(reads // PEOPLE)
    for connection in connections:
        connection.close()
    return after - before


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, help="PORT:CERTIFICATE")
    parser.add_argument("--database", required=True, help="URL of the node that it talks to, as superuser")
    parser.add_argument("--reads", type=int, default=4000)
    options = parser.parse_args()
    port, _, certificate = options.server.partition(":")
    grown = asyncio.run(grow(Target(int(port), certificate), Node(options.database), options.reads))
    print(f"{options.reads} reads made the node's sessions grow by {grown // 1024} KiB")
    sys.exit(0 if grown <= options.reads * ALLOWED else 1)


main()
