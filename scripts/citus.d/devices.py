"""Many devices of one account write at once, through one server or several: no write that was acknowledged may be lost.

Called by scripts/citus. Each round 24 devices replace one item of one revision: exactly one may hear 200, and the item has
to be what that one wrote. The same with creations of one item, and with devices that log in while others write.
"""

import argparse
import asyncio
import sys
from typing import Any

from traffic.people import Person, fresh_id, item, register
from traffic.wire import Connection, Target, loopback, request

DEVICES = 24


async def insist(connection: Connection, data: bytes) -> Any:
    """Sends a request, and again for as long as the server asks to come back later."""
    while (reply := await connection.exchange(data)).status == 503:
        await asyncio.sleep(int(reply.fields["retry-after"]))
    return reply


async def together(connections: list[Connection], requests: list[bytes]) -> list[Any]:
    pairs = zip(connections, requests, strict=True)
    return await asyncio.gather(*(insist(connection, data) for connection, data in pairs))


def contents() -> list[dict[str, Any]]:
    return [item(64) for _ in range(DEVICES)]


async def check(connection: Connection, path: str, person: Person, bodies: list[Any], replies: list[Any], good: int) -> list[str]:
    """What is wrong with the replies to writes of which exactly one can succeed."""
    winners = [number for number, reply in enumerate(replies) if reply.status == good]
    others = sorted({reply.status for reply in replies} - {good, 412})
    complaints = [] if not others else [f"{path}: statuses {others}"]
    if len(winners) != 1:
        complaints.append(f"{path}: {len(winners)} of {len(replies)} devices were told {good}")
    else:
        found = await connection.exchange(request("GET", path, token=person.token))
        if found.status != 200 or found.json["body"] != bodies[winners[0]]["body"]:
            complaints.append(f"{path}: an acknowledged write is lost")
    return complaints


async def one_round(connections: list[Connection], person: Person) -> list[str]:
    path = f"/v1/items/{fresh_id()}"
    bodies = contents()
    replies = await together(
        connections,
        [request("PUT", path, body, person.token, {"If-None-Match": "*"}) for body in bodies],
    )
    complaints = await check(connections[0], path, person, bodies, replies, 201)
    if complaints:
        return complaints
    found = await connections[0].exchange(request("GET", path, token=person.token))
    bodies = contents()
    tag = {"If-Match": found.fields["etag"]}
    replies = await together(connections, [request("PUT", path, body, person.token, tag) for body in bodies])
    return await check(connections[0], path, person, bodies, replies, 200)


async def race(targets: list[Target], rounds: int) -> list[str]:
    connections = [
        await Connection.open(targets[number % len(targets)], loopback(60, number)) for number in range(DEVICES)
    ]
    try:
        person = await register(connections[0], "devices")
        complaints: list[str] = []
        for _ in range(rounds):
            complaints += await one_round(connections, person)
        usage = (await connections[0].exchange(request("GET", "/v1/account", token=person.token))).json["usage"]
        if usage["items"] != rounds:
            complaints.append(f"{usage['items']} items are counted, {rounds} were made")
        return complaints
    finally:
        for connection in connections:
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", action="append", required=True, help="PORT:CERTIFICATE")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    targets = [Target(int(port), path) for port, _, path in (text.partition(":") for text in options.server)]
    complaints = asyncio.run(race(targets, options.rounds))
    for complaint in complaints:
        print(complaint)
    print(f"{DEVICES} devices through {len(targets)} servers, {options.rounds} rounds, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


main()
