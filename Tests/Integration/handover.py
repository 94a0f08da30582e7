"""Clients that go on while servers come and go: nothing is repeated but what was sent on a kept connection that the
server had closed before it read anything."""

import argparse
import os
import threading

from traffic.blocking import BlockingConnection
from traffic.wire import ConnectionEnded, Target, request

CLIENTS = 8


class Client:
    def __init__(self, target: Target, token: str, number: int):
        self.connection = BlockingConnection(target, None, 30)
        self.token = token
        self.number = number
        self.failures: list[str] = []
        self.repeats = 0

    def run(self, count: int, enough: str) -> None:
        done = 0
        # Until the servers have changed as often as they shall.
        while done < count or (not os.path.exists(enough) and done < 100 * count):
            self.ask()
            done += 1

    def ask(self) -> None:
        data = request("GET", "/v1/account", None, self.token)
        was_kept = self.connection.tls is not None
        try:
            reply = self.connection.exchange(data)
        except (ConnectionEnded, OSError) as error:
            if not was_kept or self.connection.received:
                self.failures.append(f"{type(error).__name__}: {error}")
                return
            self.repeats += 1
            try:
                reply = self.exchange_on_new(data)
            except (ConnectionEnded, OSError) as again:
                self.failures.append(f"on a new connection: {type(again).__name__}: {again}")
                return
        if reply.status != 200:
            self.failures.append(f"{reply.status} {reply.body[:200]!r}")

    def exchange_on_new(self, data: bytes):
        """A server that is taken over from may close a connection that has just been opened, once."""
        try:
            return self.connection.exchange(data)
        except (ConnectionEnded, OSError):
            if self.connection.received:
                raise
            self.repeats += 1
            return self.connection.exchange(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["port", "requests"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ["certificate", "token", "go"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    target = Target(options.port, options.certificate)
    clients = [Client(target, options.token, number) for number in range(CLIENTS)]
    enough = os.path.join(os.path.dirname(options.go), "enough")
    threads = [
        threading.Thread(target=client.run, args=(options.requests // CLIENTS, enough), daemon=True)
        for client in clients
    ]
    for thread in threads:
        thread.start()
    with open(options.go, "w", encoding="ascii"):
        pass
    for thread in threads:
        thread.join(300)
    failures = [failure for client in clients for failure in client.failures]
    for failure in failures[:10]:
        print(failure)
    print(f"{len(failures)} failed, {sum(client.repeats for client in clients)} repeated on a new connection")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
