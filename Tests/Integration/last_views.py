"""Shares that may be viewed once, asked for through several servers at the same moment.

A request that a slow machine disturbs is repeated. Its view may have been given without its reply, and its share created.
"""

import argparse
import asyncio
import os
import time

from traffic.patience import ATTEMPTS, passes
from traffic.people import ITERATIONS, password_key, share
from traffic.wire import Connection, Reply, Target, request

VIEWERS = 6


class Viewer:
    """Asks over one connection, which is opened again when the server has closed it."""

    def __init__(self, target: Target):
        self.target = target
        self.connection: Connection | None = None

    async def open(self) -> Connection:
        if self.connection is None:
            self.connection = await Connection.open(self.target)
        return self.connection

    async def ask_once(self, data: bytes) -> tuple[Reply, bool]:
        """The reply, and whether the same request can succeed when it is sent again."""
        connection = await self.open()
        begin = time.monotonic()
        reply = await connection.exchange(data)
        if reply.closes:
            self.close()
        return reply, passes(reply.status, reply.fields.get("retry-after"), reply.body, time.monotonic() - begin)

    async def ask(self, data: bytes) -> tuple[Reply, bool]:
        """The reply, and whether the request was repeated."""
        for attempt in range(ATTEMPTS):
            reply, is_passing = await self.ask_once(data)
            if not is_passing:
                break
            await asyncio.sleep(1)
        return reply, attempt > 0

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


async def register(viewer: Viewer) -> str:
    """The token of a new account. After a disturbance the account may exist, so that another userid is taken."""
    for _ in range(ATTEMPTS):
        userid = f"owner-{os.urandom(6).hex()}@example.org"
        body = {"userid": userid, "passwordKey": password_key(), "kdf": {"iterations": ITERATIONS}}
        reply, is_passing = await viewer.ask_once(request("POST", "/v1/accounts", body))
        if not is_passing:
            break
        await asyncio.sleep(1)
    if reply.status != 201:
        raise SystemExit(f"registration: {reply.status} {reply.body[:200]!r}")
    token: str = reply.json["session"]["token"]
    return token


async def remove_unknown(viewer: Viewer, token: str, known: set[str]) -> None:
    """Removes shares of requests that were repeated: their ids are in no reply."""
    listed, _ = await viewer.ask(request("GET", "/v1/shares", token=token))
    for each in listed.json["shares"]:
        if each["id"] not in known:
            removed, _ = await viewer.ask(request("DELETE", f"/v1/shares/{each['id']}", token=token))
            if removed.status not in (204, 404):
                raise SystemExit(f"a share to remove: {removed.status} {removed.body[:200]!r}")


async def run(ports: list[int], certificate: str, count: int) -> None:
    viewers = [Viewer(Target(port, certificate)) for port in ports for _ in range(VIEWERS)]
    for viewer in viewers:
        await viewer.open()
    owner = viewers[0]
    token = await register(owner)
    known: set[str] = set()
    done, lost, is_in_doubt = 0, 0, False
    while done < count:
        made, is_repeated = await owner.ask(request("POST", "/v1/shares", {**share(2_000), "maxViews": 1}, token))
        if made.status != 201:
            raise SystemExit(f"a share: {made.status} {made.body[:200]!r}")
        is_in_doubt = is_in_doubt or is_repeated
        known.add(made.json["id"])
        look = request("GET", f"/v1/shares/{made.json['id']}")
        replies = await asyncio.gather(*(viewer.ask(look) for viewer in viewers))
        statuses = sorted(reply.status for reply, _ in replies)
        # Without a disturbance no view is lost.
        if lost < ATTEMPTS and any(again for _, again in replies) and statuses == [404] * len(viewers):
            lost += 1
            continue
        if statuses != [200] + [404] * (len(viewers) - 1):
            raise SystemExit(f"views: {statuses}")
        done += 1
    if is_in_doubt:
        await remove_unknown(owner, token, known)
    account, _ = await owner.ask(request("GET", "/v1/account", token=token))
    if account.json["usage"]["shares"] != 0:
        raise SystemExit(f"usage: {account.json['usage']}")
    for viewer in viewers:
        viewer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--shares", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(run(options.ports, options.certificate, options.shares))


main()
