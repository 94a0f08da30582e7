"""Shares that may be viewed once, asked for through several servers at the same moment."""

import argparse
import asyncio

from traffic.people import register, share
from traffic.wire import Connection, Target, request

VIEWERS = 6


async def run(ports: list[int], certificate: str, count: int) -> None:
    connections = [
        await Connection.open(Target(port, certificate)) for port in ports for _ in range(VIEWERS)
    ]
    person = await register(connections[0], "owner")
    for _ in range(count):
        made = await connections[0].exchange(request("POST", "/v1/shares", {**share(2_000), "maxViews": 1}, person.token))
        if made.status != 201:
            raise SystemExit(f"a share: {made.status} {made.body[:200]!r}")
        look = request("GET", f"/v1/shares/{made.json['id']}")
        replies = await asyncio.gather(*(connection.exchange(look) for connection in connections))
        statuses = sorted(reply.status for reply in replies)
        if statuses != [200] + [404] * (len(connections) - 1):
            raise SystemExit(f"views: {statuses}")
    account = await connections[0].exchange(request("GET", "/v1/account", token=person.token))
    if account.json["usage"]["shares"] != 0:
        raise SystemExit(f"usage: {account.json['usage']}")
    for connection in connections:
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--shares", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(run(options.ports, options.certificate, options.shares))


main()
