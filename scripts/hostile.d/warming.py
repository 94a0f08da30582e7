"""Ordinary use before anything is measured, so that what a server keeps for reuse is there already."""

import asyncio
import time

from attacks.memory import person_with_large_page
from scene import TROUBLE, Stage
from traffic.people import fresh_id, item
from traffic.wire import Connection, loopback, request

BLOCK = 12
CONNECTIONS = 64


async def warm(stage: Stage, seconds: float) -> None:
    """Log-ins, small and large writes, and a page of 5 MB, over many connections at once."""
    person = await person_with_large_page(stage, "warm")
    end = time.monotonic() + seconds

    async def one(number: int) -> None:
        item_id = fresh_id()
        requests = [
            person.log_in(),
            request("PUT", f"/v1/items/{item_id}", item(1024), person.token, {"If-None-Match": "*"}),
            request("PUT", f"/v1/items/{item_id}", item(200_000), person.token, {"If-Match": "*"}),
            request("DELETE", f"/v1/items/{item_id}", token=person.token, fields={"If-Match": "*"}),
        ]
        if number % 16 == 0:
            requests.append(request("GET", "/v1/items?limit=500", token=person.token))
        try:
            connection = await Connection.open(stage.target, loopback(BLOCK, number))
            while time.monotonic() < end:
                for data in requests:
                    await connection.exchange(data)
            connection.close()
        except TROUBLE:
            pass

    await asyncio.gather(*map(one, range(CONNECTIONS)))
