"""Accounts for the load: made through the API, one sealed item and one share of 1 KiB in each."""

import base64
import hashlib
import http.client
import json
import os
import ssl
import string
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from loads import BenchmarkError

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass
class BenchAccount:
    userid: str
    key: str
    account_id: str
    token: str
    item_id: str
    body: str
    share_id: str

    @property
    def token_hash(self):
        """What the server stores of the token."""
        raw = base64.urlsafe_b64decode(self.token.removeprefix("slt_"))
        return hashlib.sha256(raw[16:]).hexdigest()

    @property
    def share_key(self):
        """The share's identifier as the database has it."""
        number = 0
        for character in self.share_id:
            number = number * 62 + DIGITS.index(character)
        return number.to_bytes(16, "big").hex()


class Client:
    """One connection that stays open."""

    def __init__(self, port, certificate):
        context = ssl.create_default_context(cafile=certificate)
        self.connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)

    def send(self, method, path, body, headers):
        self.connection.request(method, path, json.dumps(body), {"Content-Type": "application/json", **headers})
        reply = self.connection.getresponse()
        content = reply.read()
        if reply.status != 201:
            raise BenchmarkError(f"{method} {path.split('/')[2]}: {reply.status} {content[:500]!r}")
        return json.loads(content)


def _make(client, prefix, number):
    # A first byte above 127: never mistaken for a password.
    key = base64.b64encode(b"\xff" + os.urandom(31)).decode()
    userid = f"{prefix}-{number}@example.org"
    made = client.send(
        "POST", "/v1/accounts", {"userid": userid, "passwordKey": key, "kdf": {"iterations": 600_000}}, {}
    )
    token = made["session"]["token"]
    item_id = str(uuid.uuid4())
    body = base64.b64encode(os.urandom(1024)).decode()
    headers = {"Authorization": f"Bearer {token}", "If-None-Match": "*"}
    client.send("PUT", f"/v1/items/{item_id}", {"format": "aes-256-gcm", "body": body}, headers)
    salt = base64.b64encode(os.urandom(16)).decode()
    share = {"format": "aes-256-gcm", "salt": salt, "iterations": 600_000, "sealed": body}
    share_id = client.send("POST", "/v1/shares", share, {"Authorization": f"Bearer {token}"})["id"]
    return BenchAccount(userid, key, made["accountId"], token, item_id, body, share_id)


def make_accounts(port, certificate, count, prefix="bench"):
    """`count` accounts, made over eight connections."""

    def share(first):
        client = Client(port, certificate)
        return [_make(client, prefix, number) for number in range(first, count, 8)]

    with ThreadPoolExecutor(8) as pool:
        return [account for part in pool.map(share, range(8)) for account in part]


def write_list(accounts, path):
    """The list that load.lua reads."""
    with open(path, "w", encoding="ascii") as file:
        for a in accounts:
            file.write(f"{a.userid}\t{a.key}\t{a.token}\t{a.item_id}\t{a.body}\t{a.share_id}\n")
