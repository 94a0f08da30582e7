"""Clients that go on while servers come and go: half of them keep their connections, half open one for each request.
Of four requests one writes. Nothing is repeated but what was sent on a connection that had been used before, and that was
closed before a byte of a reply, as one is that nobody used. A write is then sent with another content, so that the server
does not take it for the same one: that the first was carried out, and its reply lost, is a failure. In the end every item is
what was answered.

A server of a slow machine may reply that the same request can be sent again. That is a failure as well, unless the machine itself
paused since the request began."""

import argparse
import os
import ssl
import threading
import time

from traffic.blocking import BlockingConnection
from traffic.patience import Answer, Attempt, exchange, repeat
from traffic.people import fresh_id, item
from traffic.ruler import Ruler
from traffic.wire import ConnectionEnded, Reply, Target, request

CLIENTS = 8
# Of each client.
ITEMS = 10
# Seconds until a reply that has not come is a failure, and until all clients have to be done.
PATIENCE = 300
LONGEST = 3_000
# How a connection ends that the other side has closed, and nothing else.
CLOSED = (ConnectionEnded, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Client:
    def __init__(self, target: Target, token: str, keeps: bool, ruler: Ruler):
        self.ruler = ruler
        self.connection = BlockingConnection(target, None, PATIENCE)
        self.token = token
        self.keeps = keeps
        #: Revision, as an entity tag, and body of what it has written, by id.
        self.items: dict[str, tuple[str, str]] = {}
        self.failures: list[str] = []
        self.done = 0
        self.writes = 0
        self.repeats = 0
        self.disturbances = 0

    def run(self, count: int, enough: str) -> None:
        # Every error is reported: a thread that ends by an error does not end the others.
        try:
            # Until the servers have changed as often as they shall.
            while self.done < count or (not os.path.exists(enough) and self.done < 100 * count):
                if self.done % 4 == 3:
                    self.write()
                else:
                    look = request("GET", "/v1/account", None, self.token)
                    self.ask(look, look, 200)
                self.done += 1
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def write(self) -> None:
        """A new item, or another content of the one that was written longest ago."""
        contents = item(64), item(64)
        if len(self.items) < ITEMS:
            item_id, condition, expected = fresh_id(), {"If-None-Match": "*"}, 201
        else:
            item_id = next(iter(self.items))
            condition, expected = {"If-Match": self.items.pop(item_id)[0]}, 200
        first, second = (
            request("PUT", f"/v1/items/{item_id}", content, self.token, condition) for content in contents
        )
        reply, is_second = self.ask(first, second, expected)
        self.items[item_id] = reply.fields["etag"], contents[is_second]["body"]
        self.writes += 1

    def ask(self, first: bytes, second: bytes, expected: int) -> tuple[Answer, bool]:
        """The answer, and whether it is to what is sent when the connection has been closed."""
        is_second = False
        name = first.split(b" HTTP", 1)[0].decode()

        def send(attempt: Attempt) -> Reply:
            nonlocal is_second
            while True:
                was_used = self.connection.tls is not None
                try:
                    return self.connection.exchange(second if is_second else first)
                except CLOSED:
                    if not was_used or self.connection.received:
                        raise
                self.repeats += 1
                # What a disturbance left in doubt stays the same.
                is_second = is_second or attempt.number == 1
                attempt.begin = time.monotonic()

        answer = repeat(send, name, creates=expected == 201, ruler=self.ruler)
        self.disturbances += answer.repeats
        if answer.status != expected:
            again = " when it is sent again" if is_second else ""
            raise RuntimeError(f"{name} is told {answer.status}{again}: {answer.body[:200]!r}")
        if not self.keeps:
            self.connection.close()
        return answer, is_second


def differences(target: Target, token: str, clients: list[Client], ruler: Ruler) -> list[str]:
    """Between what was answered and what is there."""
    connection = BlockingConnection(target, None, PATIENCE)
    answered = {item_id: content for client in clients for item_id, content in client.items.items()}
    found, page = {}, ""
    while True:
        data = request("GET", f"/v1/items?limit=100{page}", None, token)
        reply = exchange(connection, data, losses=(), ruler=ruler)
        if reply.status != 200:
            return [f"the list is told {reply.status}"]
        found |= {listed["id"]: (f'"{listed["revision"]}"', listed["body"]) for listed in reply.json["items"]}
        if not (next_page := reply.json.get("nextPage")):
            break
        page = f"&page={next_page}"
    return [
        f"item {item_id} is {found.get(item_id)}, and {answered.get(item_id)} was answered"
        for item_id in answered.keys() | found.keys()
        if answered.get(item_id) != found.get(item_id)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["port", "requests"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ["certificate", "token", "go"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    target = Target(options.port, options.certificate)
    ruler = Ruler()
    clients = [Client(target, options.token, number % 2 == 0, ruler) for number in range(CLIENTS)]
    enough = os.path.join(os.path.dirname(options.go), "enough")
    count = -(-options.requests // CLIENTS)
    threads = [threading.Thread(target=client.run, args=(count, enough), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    with open(options.go, "w", encoding="ascii"):
        pass
    deadline = time.monotonic() + LONGEST
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    failures = [failure for client in clients for failure in client.failures]
    for client, thread in zip(clients, threads, strict=True):
        if thread.is_alive():
            failures.append(f"a client has not ended after {LONGEST} s, with {client.done} of {count} requests done")
    done, writes = sum(client.done for client in clients), sum(client.writes for client in clients)
    if not failures:
        failures += differences(target, options.token, clients, ruler)
        if done < options.requests or not writes:
            failures.append(f"{done} requests were done, of which {writes} wrote, and not {options.requests}")
    for failure in failures[:10]:
        print(failure)
    opened = sum(client.done for client in clients if not client.keeps)
    repeats = sum(client.repeats for client in clients)
    disturbances = sum(client.disturbances for client in clients)
    print(
        f"{len(failures)} failed of {done} requests, {writes} of which wrote; {opened} connections were new, "
        f"{repeats} requests repeated on a new connection, {disturbances} after a pause of the machine"
    )
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
