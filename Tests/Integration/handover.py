"""Clients that go on while servers come and go: half of them keep their connections, half open one for each request.
Nothing is repeated but what was sent on a connection that had been used before, and that ended before a byte of a reply."""

import argparse
import os
import threading

from traffic.blocking import BlockingConnection
from traffic.wire import ConnectionEnded, Target, request

CLIENTS = 8


class Client:
    def __init__(self, target: Target, token: str, keeps: bool):
        self.connection = BlockingConnection(target, None, 30)
        self.data = request("GET", "/v1/account", None, token)
        self.keeps = keeps
        self.failures: list[str] = []
        self.done = 0
        self.repeats = 0

    def run(self, count: int, enough: str) -> None:
        # Until the servers have changed as often as they shall.
        while self.done < count or (not os.path.exists(enough) and self.done < 100 * count):
            self.ask()
            self.done += 1

    def ask(self) -> None:
        was_used = self.connection.tls is not None
        try:
            try:
                reply = self.connection.exchange(self.data)
            except (ConnectionEnded, OSError):
                if not was_used or self.connection.received:
                    raise
                self.repeats += 1
                reply = self.connection.exchange(self.data)
        except (ConnectionEnded, OSError) as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return
        if reply.status != 200:
            self.failures.append(f"{reply.status} {reply.body[:200]!r}")
        if not self.keeps:
            self.connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["port", "requests"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ["certificate", "token", "go"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    target = Target(options.port, options.certificate)
    clients = [Client(target, options.token, number % 2 == 0) for number in range(CLIENTS)]
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
    opened = sum(client.done for client in clients if not client.keeps)
    repeats = sum(client.repeats for client in clients)
    print(f"{len(failures)} failed; {opened} connections were new, {repeats} requests repeated on a new connection")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
