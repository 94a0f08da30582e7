"""What the metrics tell of connections, bodies, replies and streams; called by metrics.sh.

    metrics_connections.py PORT METRICS-PORT CERTIFICATE TOKEN
"""

import base64
import json
import os
import socket
import ssl
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable

from traffic.ruler import Ruler

PORT, METRICS_PORT = int(sys.argv[1]), int(sys.argv[2])
CERTIFICATE, TOKEN = sys.argv[3:]
MEBIBYTE = 1_048_576
TIME = 180
# The server closes a connection that is silent for ten seconds. A part that a slow machine has disturbed is repeated.
ATTEMPTS = 5


def tell() -> dict[str, float]:
    """All samples."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"http://127.0.0.1:{METRICS_PORT}/metrics", timeout=180
    ) as reply:
        lines = reply.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


class Unmet(Exception):
    """The metrics are not as expected."""


def expect(wanted: dict[str, float], least: dict[str, float] | None = None) -> None:
    """In one scrape, in some time; `least` is what a value may also be more than."""
    end = time.monotonic() + TIME
    while True:
        told = tell()
        if all(told.get(name) == value for name, value in wanted.items()) and all(
            told[name] >= value for name, value in (least or {}).items()
        ):
            return
        if time.monotonic() > end:
            raise Unmet(f"expected {wanted} {least or ''}, not {({name: told.get(name) for name in [*wanted, *(least or {})]})}")
        time.sleep(0.05)


def connect() -> socket.socket:
    return socket.create_connection(("127.0.0.1", PORT), timeout=TIME)


def connect_tls(receive_buffer: int = 0) -> ssl.SSLSocket:
    plain = socket.socket()
    plain.settimeout(TIME)
    if receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.connect(("127.0.0.1", PORT))
    return ssl.create_default_context(cafile=CERTIFICATE).wrap_socket(plain, server_hostname="localhost")


def head(method: str, path: str, *fields: str, length: int | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields]
    if length is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        one.close()
    expect({"saltern_connections": 0})


def connections() -> None:
    expect({"saltern_connections": 0})
    before = tell()
    told = [
        "saltern_connections_accepted_total",
        "saltern_connections_dropped_total",
        "saltern_tls_handshakes_total",
        "saltern_tls_handshakes_failed_total",
    ]

    def expect_more(accepted: int, dropped: int, completed: int, failed: int, **others: float) -> None:
        more = dict(zip(told, [accepted, dropped, completed, failed], strict=True))
        expect({name: before[name] + value for name, value in more.items()} | others)

    # No TLS: the handshake fails.
    strangers = [connect() for _ in range(2)]
    for stranger in strangers:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    expect_more(2, 0, 0, 2)
    close(*strangers)
    friends = [connect_tls() for _ in range(3)]
    expect_more(5, 0, 3, 2, saltern_connections=3)
    close(*friends)
    # As many as an address may have, and four more.
    crowd = [connect() for _ in range(44)]
    expect({"saltern_connections_dropped_total": before["saltern_connections_dropped_total"] + 4, "saltern_connections": 40})
    expect({"saltern_connections_accepted_total": before["saltern_connections_accepted_total"] + 45})
    close(*crowd)


def strange_version() -> None:
    refused = 'saltern_http_requests_total{route="unmatched",status="4xx"}'
    before = tell()
    failures = [name for name in before if name.startswith("saltern_http_requests_total") and "5xx" in name]
    stranger = connect_tls()
    stranger.sendall(b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n")
    expect_status(stranger, 505)
    close(stranger)
    expect({refused: before.get(refused, 0) + 1})
    assert failures == [name for name in tell() if name.startswith("saltern_http_requests_total") and "5xx" in name], "5xx"


def expect_status(client: socket.socket, status: int) -> None:
    said = client.recv(1_000)
    if said[9:12] != str(status).encode():
        raise Unmet(f"expected {status}, not {said!r}")


def used(budget: str) -> str:
    return f'saltern_memory_used_bytes{{budget="{budget}"}}'


def memory() -> None:
    budgets = {"bodies": 104, "unidentified_bodies": 8, "output": 88}
    expect({f'saltern_memory_budget_bytes{{budget="{name}"}}': size * MEBIBYTE for name, size in budgets.items()})
    expect({used(name): 0 for name in budgets})
    authorization = f"Authorization: Bearer {TOKEN}"
    # Bodies that do not end: of an authenticated client, and of another one.
    known, unknown = connect_tls(), connect_tls()
    path = f"/v1/items/{uuid.uuid4()}"
    known.sendall(head("PUT", path, authorization, "If-None-Match: *", length=400_000) + b" " * 200_000)
    unknown.sendall(head("POST", "/v1/kdf", length=8_000) + b" " * 6_000)
    expect({}, {used("bodies"): 200_000, used("unidentified_bodies"): 6_000})
    close(known, unknown)
    expect({used(name): 0 for name in budgets})
    # Replies that the client does not read.
    body = json.dumps({"format": "opaque", "body": base64.b64encode(os.urandom(700_000)).decode()}).encode()
    reader = connect_tls(receive_buffer=4_096)
    reader.sendall(head("PUT", path, authorization, "If-None-Match: *", length=len(body)) + body)
    expect_status(reader, 201)
    reader.sendall(head("GET", path, authorization) * 30)
    expect({}, {used("output"): 100_000})
    close(reader)
    expect({used(name): 0 for name in budgets})


def streams() -> None:
    expect({"saltern_live_streams": 0})
    listeners = [connect_tls() for _ in range(2)]
    for number, listener in enumerate(listeners):
        listener.sendall(head("GET", "/v1/changes/stream", f"Authorization: Bearer {TOKEN}"))
        expect({"saltern_live_streams": number + 1})
    close(*listeners)
    expect({"saltern_live_streams": 0})


def show(part: Callable[[], None], ruler: Ruler) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        begin = time.monotonic()
        try:
            part()
            return
        except (Unmet, OSError) as error:
            if attempt == ATTEMPTS or not ruler.was_disturbed(begin):
                sys.exit(f"{part.__name__}: {error}")
            print(f"{part.__name__}: the machine was late by {ruler.since(begin):.1f} s; once more", file=sys.stderr)


RULER = Ruler()
for each in [connections, strange_version, memory, streams]:
    show(each, RULER)
