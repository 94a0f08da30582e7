"""A device that re-encrypts an account for good: AES-256-GCM by `cryptography`, every step noted in a file.

    rotation.py register STATE             a new account with items
    rotation.py rotate STATE PROGRESS      stages everything and commits; status 3 when the server goes away
    rotation.py check STATE PROGRESS       one of the two passwords logs in and opens every item; prints old or new

Called by rotation.sh, which kills the server meanwhile. STATE has what the person knows; after a check the password that
opens the account is the old one of the next rotation. Passwords are there as what PBKDF2 would make of them (64 random
bytes): it is not what is tried here, and would be most of the work.
"""

import base64
import http.client
import json
import os
import secrets
import ssl
import sys
import time
import urllib.parse
import uuid
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from traffic.patience import ATTEMPTS, ask

URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]
ITERATIONS = 600_000
ITEM_COUNT = 1_500
TEXT_BYTES = 3_000
BATCH = 250


class Failure(Exception):
    """Something is not as it has to be."""


class Gone(Exception):
    """The server, or its database, does not answer."""


def check(holds, expected):
    if not holds:
        raise Failure(f"expected {expected}")


class Server:
    def __init__(self, token=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=CERTIFICATE)
        self.connection = http.client.HTTPSConnection(URL.hostname, URL.port, context=context, timeout=120)
        self.token = token

    def request(self, method, path, body=None, statuses=(200, 201)):
        """The status and the reply as JSON."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        # The server is killed during a rotation only. An undisturbed rotation has more attempts, too.
        attempts = int(os.environ.get("ROTATION_ATTEMPTS", "1")) if sys.argv[1] == "rotate" else ATTEMPTS
        try:
            reply = ask(self.connection, method, path, None if body is None else json.dumps(body), headers, attempts=attempts)
            received = reply.body
        except (OSError, http.client.HTTPException) as error:
            raise Gone(f"{method} {path}: {error}") from error
        if reply.status in (500, 503):
            raise Gone(f"{method} {path}: {received[:500]!r}")
        check(reply.status in statuses, f"{method} {path}: not {reply.status} {received[:500]!r}")
        return reply.status, json.loads(received)

    def items(self):
        path = "/v1/items?limit=500"
        while path:
            _, page = self.request("GET", path)
            yield from page["items"]
            path = f"/v1/items?limit=500&page={page['nextPage']}" if "nextPage" in page else None


class Keys:
    """What follows from a password: what the server gets, and what stays on the device."""

    def __init__(self, password):
        stretched = bytes.fromhex(password)
        self.password_key = base64.b64encode(stretched[:32]).decode()
        self.sealing = AESGCM(stretched[32:])

    def seal(self, text, item):
        nonce = os.urandom(12)
        return base64.b64encode(nonce + self.sealing.encrypt(nonce, text.encode(), item.encode())).decode()

    def open(self, body, item):
        sealed = base64.b64decode(body, validate=True)
        return self.sealing.decrypt(sealed[:12], sealed[12:], item.encode()).decode()


def random_password():
    return secrets.token_hex(64)


def text_of(item):
    return (f"The text of {item}. " * (TEXT_BYTES // 20))[:TEXT_BYTES]


def batches(values):
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def register(state_path):
    old = random_password()
    keys, server = Keys(old), Server()
    # A request that is repeated may have made the account the first time. Then another userid is taken.
    for _ in range(ATTEMPTS):
        userid = f"rotation-{uuid.uuid4()}@example.org"
        body = {"userid": userid, "passwordKey": keys.password_key, "kdf": {"iterations": ITERATIONS}}
        status, reply = server.request("POST", "/v1/accounts", body, (201, 409))
        if status == 201:
            break
    check(status == 201, f"a new account, not {reply}")
    server.token = reply["session"]["token"]
    items = [str(uuid.uuid4()) for _ in range(ITEM_COUNT)]
    for batch in batches(items):
        operations = [
            {"op": "put", "id": item, "ifRevision": 0, "format": "aes-256-gcm", "body": keys.seal(text_of(item), item)}
            for item in batch
        ]
        server.request("POST", "/v1/items/batch", {"operations": operations})
    save(state_path, {"userid": userid, "old": old, "new": random_password(), "items": items})


def rotate(state_path, progress):
    state = load(state_path)
    old, new = Keys(state["old"]), Keys(state["new"])
    server = Server()
    login = {"userid": state["userid"], "passwordKey": old.password_key}
    server.token = server.request("POST", "/v1/sessions", login)[1]["session"]["token"]
    proof = {"currentPasswordKey": old.password_key}
    rotation = f"/v1/rotations/{server.request('POST', '/v1/rotations', proof)[1]['id']}"
    note(progress, "opened")
    staged = [
        {"id": item["id"], "ifRevision": item["revision"], "format": "aes-256-gcm",
         "body": new.seal(old.open(item["body"], item["id"]), item["id"])}
        for item in server.items()
    ]
    for batch in batches(staged):
        server.request("PUT", f"{rotation}/items", {"items": batch})
        note(progress, "staged")
    note(progress, "committing")
    commit = {**proof, "passwordKey": new.password_key, "kdf": {"iterations": ITERATIONS}}
    begin = time.monotonic()
    _, reply = server.request("POST", f"{rotation}/commit", commit)
    check(reply["items"] == len(state["items"]), f"every item to be swapped, not {reply['items']}")
    note(progress, f"committed {time.monotonic() - begin:.3f}")
    # The reply might have been lost.
    check(server.request("POST", f"{rotation}/commit", commit)[1]["revision"] == reply["revision"], "the same answer")


def state_of(server, state, name):
    """Whether a password logs in; then it opens every item."""
    keys = Keys(state[name])
    login = {"userid": state["userid"], "passwordKey": keys.password_key}
    status, reply = server.request("POST", "/v1/sessions", login, (201, 401))
    if status == 401:
        return False
    server.token = reply["session"]["token"]
    found = {}
    for item in server.items():
        try:
            found[item["id"]] = keys.open(item["body"], item["id"])
        except InvalidTag:
            raise Failure(f"expected every item to open with the {name} password, which logs in") from None
    check(found == {item: text_of(item) for item in state["items"]}, "every item, with its text")
    _, account = server.request("GET", "/v1/account")
    check(account["usage"]["bytes"] == len(found) * (TEXT_BYTES + 28), "the bytes that the items have")
    server.token = None
    return True


def check_state(state_path, progress):
    state, server = load(state_path), Server()
    is_new, is_old = state_of(server, state, "new"), state_of(server, state, "old")
    check(is_new != is_old, "one of the two passwords to log in")
    with open(progress) as file:
        was_told = any(line.startswith("committed") for line in file)
    check(is_new or not was_told, "what was acknowledged to be there")
    print("new" if is_new else "old")
    if is_new:
        save(state_path, {**state, "old": state["new"], "new": random_password()})


def note(progress, step):
    with open(progress, "a") as file:
        file.write(step + "\n")


def load(path):
    with open(path) as file:
        return json.load(file)


def save(path, state):
    with open(path, "w") as file:
        json.dump(state, file)


if __name__ == "__main__":
    try:
        commands: dict[str, Callable[..., None]] = {"register": register, "rotate": rotate, "check": check_state}
        commands[sys.argv[1]](*sys.argv[2:])
    except Failure as failure:
        sys.exit(str(failure))
    except Gone as gone:
        print(gone, file=sys.stderr)
        sys.exit(3)
