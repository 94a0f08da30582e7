"""Counts what an authenticated GET of 1 KiB costs a running server: allocations, and system calls under load.

Called by scripts/allocations, which starts the server with Count/count.c before its libraries.
"""

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys

from traffic.blocking import BlockingConnection
from traffic.people import base64_of, fresh_id, password_key
from traffic.wire import Target, request

#: The most of each for one request. Half an allocation more is the log's and the timers', which come with time.
ALLOCATIONS = 40.5
SYSTEM_CALLS = 5.0

ROUNDS = 1_000
CONNECTIONS = 32
LOAD_SECONDS = 5


def prepare(target: Target) -> bytes:
    """An account with an item of 1 KiB. Returns the request that is counted."""
    connection = BlockingConnection(target)
    body = {"userid": f"{fresh_id()}@example.org", "passwordKey": password_key(), "kdf": {"iterations": 600_000}}
    made = connection.exchange(request("POST", "/v1/accounts", body))
    token = made.json["session"]["token"]
    path = f"/v1/items/{fresh_id()}"
    content = {"format": "aes-256-gcm", "body": base64_of(b"\xff" + os.urandom(1_023))}
    reply = connection.exchange(request("PUT", path, content, token, {"If-None-Match": "*"}))
    if made.status != 201 or reply.status != 201:
        raise SystemExit(f"could not prepare: {made.status}, {reply.status} {reply.body!r}")
    connection.close()
    return request("GET", path, token=token, fields={"Accept": "application/json"})


def allocations(target: Target, get: bytes, counter: str) -> float:
    """For one request, of one connection that stays open: a second run takes what the first one costs away."""

    def count() -> int:
        with open(counter, "rb") as file:
            return int.from_bytes(file.read(8), sys.byteorder)

    connection = BlockingConnection(target)

    def run(rounds: int) -> int:
        before = count()
        for _ in range(rounds):
            reply = connection.exchange(get)
            if reply.status != 200:
                raise SystemExit(f"GET: {reply.status} {reply.body!r}")
        return count() - before

    run(ROUNDS)
    once, twice = run(ROUNDS), run(2 * ROUNDS)
    connection.close()
    return (twice - once) / ROUNDS


def system_calls(target: Target, get: bytes, server: int) -> float:
    """For one request, when there are always some that wait. Opening the connections is a hundredth of it."""
    path, *fields = get.decode("ascii").split(" ", 1)[1].strip().split("\r\n")
    load = ["wrk", "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{LOAD_SECONDS}s"]
    for field in fields[1:]:
        load += ["--header", field]
    tracer = subprocess.Popen(
        ["strace", "--follow-forks", "--summary-only", "--attach", str(server)], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    for line in tracer.stderr:
        if "attached" in line:
            break
    output = subprocess.run(
        [*load, f"https://127.0.0.1:{target.port}{path.split(' ')[0]}"], check=True, capture_output=True, text=True
    ).stdout
    tracer.send_signal(signal.SIGINT)
    report = tracer.stderr.read()
    tracer.wait()
    done = re.search(r"(\d+) requests in", output)
    calls = re.search(r"^100\.00 +\S+ +(?:\S+ +)?(\d+) +(?:\d+ +)?total$", report, re.MULTILINE)
    if not done or not calls or "Non-2xx" in output:
        raise SystemExit(f"could not count system calls:\n{output}\n{report}")
    print(report, file=sys.stderr)
    return int(calls.group(1)) / int(done.group(1))


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/allocations")
    parser.add_argument("--count", required=True, help="the file that the server keeps its count in")
    parser.add_argument("--allocations-only", action="store_true")
    for name in ["url", "home", "owner-database"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    target = Target.of(options.url, os.path.join(options.home, "tls", "certificate.pem"))
    with open(os.path.join(options.home, "server.pid"), encoding="ascii") as file:
        server = int(file.read())
    get = prepare(target)
    found = [("allocations", allocations(target, get, options.count), ALLOCATIONS)]
    if not options.allocations_only:
        found.append(("system calls under load", system_calls(target, get, server), SYSTEM_CALLS))
    for name, count, bound in found:
        print(f"GET /v1/items/{{id}}, 1 KiB: {count:.2f} {name}, at most {bound}")
    if any(count > bound for _, count, bound in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
