"""Logs in and uses every kind of secret, then looks for them in the memory of the server.

usage: memory.py URL CERTIFICATE PID ROUNDS
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import ssl
import struct
import sys
import time
import urllib.parse

from traffic.patience import ask

ITERATIONS = 600_000


class Client:
    """One connection that stays open, and new ones that do not: both leave buffers behind."""

    def __init__(self, url: str, certificate: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.context = ssl.create_default_context(cafile=certificate)
        self.open = self.connect()
        self.count = 0

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=180)

    def send(self, method: str, path: str, body: object = None, token: str | None = None, expected: int = 200) -> dict:
        self.count += 1
        connection = self.open if self.count % 2 else self.connect()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = "Bearer " + token
        reply = ask(connection, method, path, json.dumps(body) if body is not None else None, headers)
        text = reply.body
        if connection is not self.open:
            connection.close()
        if reply.status != expected:
            raise SystemExit(f"{method} {path}: {reply.status} instead of {expected}: {text[:500]!r}")
        return json.loads(text) if text else {}


secrets: dict[str, bytes] = {}


def remember(name: str, text: str) -> str:
    secrets[name] = text.encode()
    return text


def key(name: str) -> str:
    raw = b"\xff" + os.urandom(31)
    secrets[name + ", raw"] = raw
    return remember(name, base64.b64encode(raw).decode())


def remember_token(name: str, token: str) -> str:
    prefix, text = token.split("_", 1)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # What is no secret of it comes first: the account's id.
    secrets[name + ", raw"] = raw[-32:]
    return remember(name, token)


def one_time_code(secret: str, offset: int = 0) -> str:
    counter = int(time.time()) // 30 + offset
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", counter), hashlib.sha1).digest()
    start = digest[-1] & 15
    return str((struct.unpack(">I", digest[start : start + 4])[0] & 0x7FFFFFFF) % 1_000_000).zfill(6)


def one_person(client: Client, number: int) -> None:
    userid = f"memory-{number}-{os.urandom(6).hex()}@example.org"
    first = key(f"password key {number}")
    kdf = {"iterations": ITERATIONS}
    made = client.send(
        "POST", "/v1/accounts", {"userid": userid, "passwordKey": first, "kdf": kdf}, expected=201)
    token = remember_token(f"first token {number}", made["session"]["token"])
    device = remember_token(f"device token {number}", made["deviceToken"])
    for again in range(3):
        body = {"userid": userid, "passwordKey": first, "device": {"token": device, "name": "memory"}}
        reply = client.send("POST", "/v1/sessions", body, expected=201)
        remember_token(f"token {number}.{again}", reply["session"]["token"])
        wrong = key(f"wrong key {number}.{again}") if again == 0 else None
        if wrong:
            client.send("POST", "/v1/sessions", body | {"passwordKey": wrong}, expected=401)
    client.send("GET", "/v1/account", token=token)

    recovery = key(f"recovery key {number}")
    keyring = base64.b64encode(os.urandom(120)).decode()
    client.send(
        "PUT", "/v1/account/recovery",
        {"currentPasswordKey": first, "recoveryKey": recovery, "keyring": keyring}, token)
    factor = client.send("POST", "/v1/account/totp", {"currentPasswordKey": first}, token, expected=201)
    secret = remember(f"TOTP secret {number}", factor["secret"])
    secrets[f"TOTP secret {number}, raw"] = base64.b32decode(secret)
    codes = client.send("POST", "/v1/account/totp/confirm", {"totp": one_time_code(secret)}, token)["recoveryCodes"]
    for index, code in enumerate(codes):
        remember(f"recovery code {number}.{index}", code)
        remember(f"recovery code {number}.{index} without hyphens", code.replace("-", ""))
    client.send(
        "POST", "/v1/sessions", {"userid": userid, "passwordKey": first, "totp": codes[0]}, expected=201)

    recovered = client.send("POST", "/v1/recoveries", {"userid": userid, "recoveryKey": recovery}, expected=201)
    restricted = remember_token(f"restricted token {number}", recovered["session"]["token"])
    second = key(f"second password key {number}")
    client.send(
        "PUT", "/v1/account/credential",
        {"passwordKey": second, "kdf": kdf, "keyring": keyring, "recoveryKeyring": keyring}, restricted)
    # Refusals have seen the secrets too.
    client.send("POST", "/v1/sessions", {"userid": userid, "passwordKey": second, "more": second}, expected=422)
    client.send("GET", "/v1/account", token=restricted[:-4] + "AAAA", expected=401)


def regions(pid: int) -> list[tuple[int, int, str]]:
    """What the process may read and write: heap, stacks, what threads and libraries have."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            start, end = (int(number, 16) for number in fields[0].split("-"))
            if fields[1].startswith("rw"):
                found.append((start, end, fields[5].strip() if len(fields) > 5 else "anonymous"))
    return found


def search(pid: int) -> tuple[dict[str, list[str]], int]:
    places: dict[str, list[str]] = {}
    total = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, name in regions(pid):
            try:
                memory.seek(start)
                data = b""
                while len(data) < end - start:
                    part = memory.read(end - start - len(data))
                    if not part:
                        break
                    data += part
            except OSError:
                continue
            total += len(data)
            for secret, text in secrets.items():
                position = data.find(text)
                while position >= 0:
                    around = data[max(0, position - 48) : position + 24]
                    places.setdefault(secret, []).append(f"{name} {start + position:#x} {around!r}")
                    position = data.find(text, position + 1)
    return places, total


def main() -> None:
    url, certificate, pid, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    client = Client(url, certificate)
    for number in range(rounds):
        one_person(client, number)
    # What is done a moment later, such as recording a session's use, is done by now.
    time.sleep(5)
    # The search finds present values: the salt prefix, which is not a secret.
    present = {"salt prefix": client.send("GET", "/v1/service")["saltPrefix"].encode()}
    secrets.update(present)
    places, total = search(pid)
    if not all(name in places for name in present):
        raise SystemExit("expected to find in memory what is no secret")
    for name in present:
        del secrets[name], places[name]
    print(f"{len(secrets)} secrets, {total >> 20} MiB of memory")
    for name, found in sorted(places.items()):
        print(f"found {name}, {len(found)} times:", *found[:4], sep="\n    ")
    if places:
        raise SystemExit(f"expected no secret in memory, found {len(places)}")


main()
