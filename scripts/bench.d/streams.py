"""What live streams cost while nothing changes, and how soon a change is told."""

import http.client
import json
import socket
import ssl
import statistics
import time
import uuid

import processes
from loads import BenchmarkError

STREAMS = 1000
CHANGES = 20


class Stream:
    """One connection with a live stream on it."""

    def __init__(self, port, context, token):
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname="localhost")
        self.socket.sendall(
            f"GET /v1/changes/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        self.received = b""

    def wait_for(self, text):
        """Reads until `text` has come, and forgets it and what came before."""
        while text not in self.received:
            more = self.socket.recv(4096)
            if not more:
                raise BenchmarkError(f"a stream ended: {self.received[:500]!r}")
            self.received += more
        self.received = self.received.partition(text)[2]

    def close(self):
        self.socket.close()


def _open(port, context, accounts):
    streams = [Stream(port, context, account.token) for account in accounts]
    for stream in streams:
        stream.wait_for(b"event: change\n")
    return streams


def _close(streams):
    for stream in streams:
        stream.close()
    time.sleep(1)


def _change(client, account):
    headers = {"Authorization": f"Bearer {account.token}", "If-None-Match": "*", "Content-Type": "application/json"}
    body = json.dumps({"format": "aes-256-gcm", "body": account.body})
    client.request("PUT", f"/v1/items/{uuid.uuid4()}", body, headers)
    reply = client.getresponse()
    if reply.status != 201:
        raise BenchmarkError(f"PUT: {reply.status} {reply.read()!r}")
    reply.read()


def measure(port, certificate, accounts, server, seconds):
    context = ssl.create_default_context(cafile=certificate)
    # Warm first, so that what the server keeps for reuse is not taken for a stream's.
    _close(_open(port, context, accounts[:64]))
    before = processes.resident_kilobytes(server)
    streams = _open(port, context, accounts[:STREAMS])
    time.sleep(1)
    grown = processes.resident_kilobytes(server) - before
    used = processes.cpu_seconds(server)
    time.sleep(seconds)
    used = processes.cpu_seconds(server) - used
    client = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
    delays = []
    for stream, account in list(zip(streams, accounts))[:CHANGES]:
        _change(client, account)
        done = time.monotonic()
        stream.wait_for(b"event: change\n")
        delays.append(time.monotonic() - done)
    _close(streams)
    return {
        "streams": STREAMS,
        "megabytes": round(grown / 1024, 2),
        "percentOfACoreWhenIdle": round(used / seconds * 100, 2),
        "medianMillisecondsToTell": round(statistics.median(delays) * 1000, 1),
        "maximumMillisecondsToTell": round(max(delays) * 1000, 1),
    }
