"""Shares that may be viewed once, asked for through several servers at the same moment.

A request that a slow machine disturbs is repeated. Its view may have been given without its reply, and its share created.
"""

import argparse
import os
from concurrent.futures import ThreadPoolExecutor

from traffic.blocking import BlockingConnection
from traffic.patience import ATTEMPTS, Answer, exchange, repeat
from traffic.people import ITERATIONS, password_key, share
from traffic.wire import Target, request

VIEWERS = 6


def ask(connection: BlockingConnection, data: bytes) -> Answer:
    return exchange(connection, data, losses=())


def registration() -> bytes:
    userid = f"owner-{os.urandom(6).hex()}@example.org"
    return request("POST", "/v1/accounts", {"userid": userid, "passwordKey": password_key(), "kdf": {"iterations": ITERATIONS}})


def register(connection: BlockingConnection) -> str:
    """The token of a new account. After a disturbance the account may exist, so that another userid is taken."""
    answer = repeat(lambda _: connection.exchange(registration()), "POST /v1/accounts")
    if answer.status != 201:
        raise SystemExit(f"registration: {answer.status} {answer.body[:200]!r}")
    token: str = answer.json["session"]["token"]
    return token


def remove_unknown(owner: BlockingConnection, token: str, known: set[str]) -> None:
    """Removes shares of requests that were repeated: their ids are in no reply."""
    for each in ask(owner, request("GET", "/v1/shares", token=token)).json["shares"]:
        if each["id"] not in known:
            removed = ask(owner, request("DELETE", f"/v1/shares/{each['id']}", token=token))
            if removed.status != 204 and (removed.status != 404 or not removed.repeats):
                raise SystemExit(f"a share to remove: {removed.status} {removed.body[:200]!r}")


def run(ports: list[int], certificate: str, count: int) -> None:
    viewers = [BlockingConnection(Target(port, certificate)) for port in ports for _ in range(VIEWERS)]
    for viewer in viewers:
        viewer.open()
    owner = viewers[0]
    token = register(owner)
    known: set[str] = set()
    done, lost, is_in_doubt = 0, 0, False
    with ThreadPoolExecutor(len(viewers)) as threads:
        while done < count:
            made = ask(owner, request("POST", "/v1/shares", {**share(2_000), "maxViews": 1}, token))
            if made.status != 201:
                raise SystemExit(f"a share: {made.status} {made.body[:200]!r}")
            is_in_doubt = is_in_doubt or made.repeats > 0
            known.add(made.json["id"])
            look = request("GET", f"/v1/shares/{made.json['id']}")
            answers = list(threads.map(ask, viewers, [look] * len(viewers)))
            statuses = sorted(answer.status for answer in answers)
            # Without a disturbance no view is lost.
            if lost < ATTEMPTS and any(answer.repeats for answer in answers) and statuses == [404] * len(viewers):
                lost += 1
                continue
            if statuses != [200] + [404] * (len(viewers) - 1):
                raise SystemExit(f"views: {statuses}")
            done += 1
    if is_in_doubt:
        remove_unknown(owner, token, known)
    account = ask(owner, request("GET", "/v1/account", token=token))
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
    run(options.ports, options.certificate, options.shares)


main()
