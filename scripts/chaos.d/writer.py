"""One of those who write while things break, and who look afterwards at what has become of it."""

import os
import random
import ssl
import threading
import time
from typing import Any

from ledger import ABSENT, Account

from traffic.blocking import BlockingConnection
from traffic.patience import exchange
from traffic.people import ITERATIONS, fresh_id, item, password_key, share
from traffic.wire import ConnectionEnded, Fields, Reply, Target, request

TROUBLE = (OSError, ssl.SSLError, ConnectionEnded, ValueError)
ACCOUNTS = 3
ITEMS = 30
SHARES = 10
PATIENCE = 25.0


class Writer:
    """Writes at random to accounts of its own. Complaints are what no breakdown excuses."""

    def __init__(self, target: Target, address: str, number: int):
        self.connection = BlockingConnection(target, address, PATIENCE)
        self.number = number
        self.random = random.Random(number)
        self.accounts: list[Account] = []
        self.complaints: list[str] = []
        self.acknowledged = 0
        self.lost = 0

    # Writing

    def write_until(self, over: threading.Event, seed: int, only_items: bool = False) -> None:
        self.random = random.Random(f"{seed} {self.number}")
        while not over.is_set():
            self.write(only_items)
            time.sleep(self.random.uniform(0, 0.03))

    def write(self, only_items: bool = False) -> None:
        usable = [account for account in self.accounts if account.is_usable]
        may_register = len(self.accounts) < ACCOUNTS and not only_items
        if not usable or (may_register and self.random.random() < 0.1):
            # Those that nobody can use before the next look are too few to matter.
            if len(self.accounts) < 10 * ACCOUNTS:
                self.register()
            return
        account = self.random.choice(usable)
        acts = [(8, self.put), (2, self.delete)]
        if not only_items:
            acts += [
                (3, self.batch),
                (2, self.make_share),
                (1, self.replace_share),
                (1, self.delete_share),
                (1, self.change_credential),
            ]
        self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0](account)

    def send(self, data: bytes, *expected: int) -> Reply | None:
        """The reply when it acknowledges; none when it is not known what has happened."""
        try:
            reply = self.connection.exchange(data)
        except TROUBLE:
            self.lost += 1
            time.sleep(0.05)
            return None
        if reply.status in expected:
            self.acknowledged += 1
            return reply
        if reply.status < 500:
            self.complaints.append(f"{data.split(b' HTTP')[0].decode()}: {reply.status} {reply.body[:200]!r}")
        self.lost += 1
        return None

    def ask(self, account: Account, method: str, path: str, body: Any, fields: Fields, *expected: int) -> Reply | None:
        return self.send(request(method, path, body, account.token, fields), *expected)

    def register(self) -> None:
        account = Account(f"{os.urandom(8).hex()}@example.org", {password_key()}, False)
        self.accounts.append(account)
        body = {"userid": account.userid, "passwordKey": account.key, "kdf": {"iterations": ITERATIONS}}
        if reply := self.send(request("POST", "/v1/accounts", body), 201):
            account.exists, account.token = True, reply.json["session"]["token"]

    def content(self) -> dict[str, Any]:
        return item(self.random.choice([64, 500, 2_000, 20_000]))

    def put(self, account: Account) -> None:
        known = account.items.certain()
        new = not known or (len(known) < ITEMS and self.random.random() < 0.5)
        item_id = fresh_id() if new else self.random.choice(known)
        body = self.content()
        fields = {"If-None-Match": "*"} if new else {"If-Match": "*"}
        if self.ask(account, "PUT", f"/v1/items/{item_id}", body, fields, 201, 200):
            account.items.acknowledged(item_id, body["body"])
        else:
            account.items.unknown(item_id, body["body"])

    def delete(self, account: Account) -> None:
        if not (known := account.items.certain()):
            return
        item_id = self.random.choice(known)
        if self.ask(account, "DELETE", f"/v1/items/{item_id}", None, {"If-Match": "*"}, 200):
            account.items.acknowledged(item_id, ABSENT)
        else:
            account.items.unknown(item_id, ABSENT)

    def batch(self, account: Account) -> None:
        known = account.items.certain()
        chosen = self.random.sample(known, min(4, len(known)))
        wanted: dict[str, str | None] = {}
        operations: list[dict[str, Any]] = []
        if len(chosen) > 1:
            removed = chosen.pop()
            wanted[removed] = ABSENT
            operations.append({"op": "delete", "id": removed})
        for item_id in [*chosen, fresh_id()]:
            body = self.content()
            wanted[item_id] = body["body"]
            operations.append({"op": "put", "id": item_id, **body})
        done = self.ask(account, "POST", "/v1/items/batch", {"operations": operations}, {}, 200)
        for item_id, content in wanted.items():
            (account.items.acknowledged if done else account.items.unknown)(item_id, content)

    def make_share(self, account: Account) -> None:
        if len(account.shares.possible) >= SHARES:
            return
        body = share(self.random.choice([64, 2_000]))
        if reply := self.ask(account, "POST", "/v1/shares", body, {}, 201):
            made = reply.json
            account.shares.acknowledged(made["id"], body["sealed"])
            account.manage_tokens[made["id"]] = made["manageToken"]
        else:
            account.may_have_more_shares = True

    def replace_share(self, account: Account) -> None:
        if not (known := account.shares.certain()):
            return
        share_id, body = self.random.choice(known), share(300)
        if self.ask(account, "PUT", f"/v1/shares/{share_id}", body, {}, 200):
            account.shares.acknowledged(share_id, body["sealed"])
        else:
            account.shares.unknown(share_id, body["sealed"])

    def delete_share(self, account: Account) -> None:
        if not (known := account.shares.certain()):
            return
        share_id = self.random.choice(known)
        token = account.manage_tokens.get(share_id, account.token)
        if self.send(request("DELETE", f"/v1/shares/{share_id}", token=token), 204):
            account.shares.acknowledged(share_id, ABSENT)
        else:
            account.shares.unknown(share_id, ABSENT)

    def change_credential(self, account: Account) -> None:
        key = password_key()
        body = {"currentPasswordKey": account.key, "passwordKey": key, "kdf": {"iterations": ITERATIONS}}
        if self.ask(account, "PUT", "/v1/account/credential", body, {}, 200):
            account.keys = {key}
        else:
            account.keys.add(key)

    # Looking

    def look(self) -> None:
        """Compares everything with the ledger. Nothing is broken now, so every request has to succeed."""
        self.accounts = [account for account in self.accounts if self.found(account)]
        for account in self.accounts:
            self.compare(account)

    def found(self, account: Account) -> bool:
        """Logs in with each key that the account may have. False when it does not exist, and need not."""
        if account.token is not None and len(account.keys) == 1:
            return True
        for key in account.keys:
            body = {"userid": account.userid, "passwordKey": key}
            reply = exchange(self.connection, request("POST", "/v1/sessions", body))
            if reply.status == 201:
                account.exists, account.keys, account.token = True, {key}, reply.json["session"]["token"]
                return True
            if reply.status != 401:
                self.complaints.append(f"a log-in: {reply.status} {reply.body[:200]!r}")
        if account.exists:
            self.complaints.append(f"{account.userid} cannot log in with any of {len(account.keys)} keys")
        return False

    def get(self, account: Account, path: str) -> Any:
        reply = exchange(self.connection, request("GET", path, token=account.token))
        if reply.status != 200:
            self.complaints.append(f"GET {path.split('?')[0]}: {reply.status} {reply.body[:200]!r}")
            return {}
        return reply.json

    def listing(self, account: Account, path: str, member: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page = None
        while True:
            listed = self.get(account, f"{path}?limit=100" + (f"&page={page}" if page else ""))
            found += listed.get(member, [])
            if not (page := listed.get("nextPage")):
                return found

    def compare(self, account: Account) -> None:
        log_in = exchange(
            self.connection, request("POST", "/v1/sessions", {"userid": account.userid, "passwordKey": account.key})
        )
        if log_in.status != 201:
            self.complaints.append(f"a log-in with the acknowledged key: {log_in.status} {log_in.body[:200]!r}")
        items = {listed["id"]: listed["body"] for listed in self.listing(account, "/v1/items", "items")}
        self.complaints += account.items.settle(items, "item")
        usage = self.get(account, "/v1/account").get("usage", {})
        if usage.get("items") != len(items):
            self.complaints.append(f"{len(items)} items are listed and {usage.get('items')} are counted")
        shares = {
            listed["id"]: self.get(account, f"/v1/shares/{listed['id']}").get("sealed", "?")
            for listed in self.listing(account, "/v1/shares", "shares")
        }
        if account.may_have_more_shares:
            for unknown in shares.keys() - account.shares.possible.keys():
                account.shares.acknowledged(unknown, shares[unknown])
            account.may_have_more_shares = False
        self.complaints += account.shares.settle(shares, "share")
