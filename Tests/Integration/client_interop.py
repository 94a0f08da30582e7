"""A client in Python beside the kit, on one account: what either has sealed the other one opens. By docs/protocol.md alone.

    make      registers an account, writes items, files, a printed code and a share
    read      logs in, and opens everything: the items as `saltern-client export` has them
    recover   opens with the printed code what the kit has sealed for it

Called by client-interop.sh; what it has made is in the folder that it is given.
"""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import ssl
import sys
import urllib.parse
import uuid

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import saltern_1
from traffic.patience import ask

ITERATIONS = 600_000
CHUNK = 512 << 10
WORK = pathlib.Path(sys.argv[2])
URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def encoded(content):
    return base64.b64encode(content).decode()


class Server:
    """One connection, and the token of a session."""

    def __init__(self):
        context = ssl.create_default_context(cafile=os.environ["SALTERN_TEST_CERTIFICATE"])
        self.connection = http.client.HTTPSConnection(URL.hostname, URL.port, context=context, timeout=180)
        self.token = None

    def send(self, method, path, body=None, **fields):
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            fields["Content-Type"] = "application/json"
        reply = ask(self.connection, method, path, None if body is None else json.dumps(body), fields)
        content = reply.body
        check(reply.status in (200, 201, 204), f"2xx of {method} {path}: {reply.status} {content[:500]!r}")
        return json.loads(content) if content else None


class Person:
    def __init__(self, userid, password):
        self.server = Server()
        self.userid = userid
        self.salt_prefix = self.server.send("POST", "/v1/kdf", {"userid": userid})["saltPrefix"]
        self.password_key, self.unlock_key = saltern_1.stretch(password, self.salt_prefix + userid, ITERATIONS)

    def enter(self, reply):
        self.account = uuid.UUID(reply["accountId"]).bytes
        self.server.token = reply["session"]["token"]

    def register(self):
        self.keyring = saltern_1.Keyring()
        self.enter(self.server.send("POST", "/v1/accounts", {
            "userid": self.userid, "passwordKey": encoded(self.password_key), "kdf": {"iterations": ITERATIONS},
            "keyring": encoded(self.keyring.sealed(self.unlock_key, self.userid))}))

    def log_in(self):
        reply = self.server.send(
            "POST", "/v1/sessions", {"userid": self.userid, "passwordKey": encoded(self.password_key)})
        self.enter(reply)
        self.keyring = saltern_1.Keyring.unsealed(base64.b64decode(reply["keyring"]), self.unlock_key)

    # MARK: Items

    def seal(self, content, part, item, collection, edit=1, previous=saltern_1.FIRST):
        key = self.keyring.data_keys[-1]
        return saltern_1.seal(content, edit, previous, part, self.account, item, collection, key)

    def put(self, title, content, collection="notes", item=None, edit=1, previous=saltern_1.FIRST, revision=None):
        item = item or uuid.uuid4().bytes
        body = self.seal(content, saltern_1.BODY, item, collection, edit, previous)
        members = {"collection": collection, "format": "saltern-1", "body": encoded(body)}
        if title is not None:
            members["title"] = encoded(self.seal(title.encode(), saltern_1.TITLE, item, collection, edit, previous))
        precondition = {"If_None_Match": "*"} if revision is None else {"If_Match": f'"{revision}"'}
        reply = self.server.send("PUT", f"/v1/items/{uuid.UUID(bytes=item)}", members, **precondition)
        return item, reply["revision"], hashlib.sha256(body).digest()

    def put_file(self, path, content):
        attachment, chunks = uuid.uuid4().bytes, []
        pieces = [content[first : first + CHUNK] for first in range(0, len(content), CHUNK)]
        for index, piece in enumerate(pieces if len(pieces) > 1 else []):
            chunk = saltern_1.chunk_id(self.keyring, attachment, index, piece)
            body = self.seal(piece, saltern_1.CHUNK, chunk, "saltern-chunks")
            members = {"collection": "saltern-chunks", "format": "saltern-1", "body": encoded(body)}
            self.server.send("PUT", f"/v1/items/{uuid.UUID(bytes=chunk)}", members, If_None_Match="*")
            chunks.append(chunk)
        self.put(path, saltern_1.manifest(attachment, content, CHUNK, chunks), "files")

    def documents(self):
        """Every item as `saltern-client export` has it, by id."""
        documents, page = {}, ""
        while page is not None:
            reply = self.server.send("GET", "/v1/items?limit=500" + page)
            for state in reply["items"]:
                if state["collection"] != "saltern-chunks":
                    documents[state["id"]] = self.document(state)
            page = f"&page={reply['nextPage']}" if "nextPage" in reply else None
        return documents

    def document(self, state):
        item, collection = uuid.UUID(state["id"]).bytes, state["collection"]
        check(state["format"] == "saltern-1", "the format of what the kit writes")
        opened = saltern_1.unseal(
            base64.b64decode(state["body"]), saltern_1.BODY, self.account, item, collection, self.keyring.data_keys)
        title = None
        if "title" in state:
            title, *edit = saltern_1.unseal(
                base64.b64decode(state["title"]), saltern_1.TITLE, self.account, item, collection, self.keyring.data_keys)
            check(tuple(edit) == opened[1:], "title and body of one edit")
        content = saltern_1.file_content(opened[0], self.chunk)
        return collection, None if title is None else title.decode(), content

    def chunk(self, name):
        state = self.server.send("GET", f"/v1/items/{name}")
        return saltern_1.unseal(
            base64.b64decode(state["body"]), saltern_1.CHUNK, self.account, uuid.UUID(name).bytes, "saltern-chunks",
            self.keyring.data_keys)[0]

    # MARK: Recovery

    def print_code(self):
        code = saltern_1.code_text()
        recovery_key, unlock_key = saltern_1.stretch_code(code, self.salt_prefix)
        self.keyring.recovery = saltern_1.new_recovery(unlock_key, self.account)
        self.keyring.counter += 1
        revision = self.server.send("GET", "/v1/account/keyring")["revision"]
        self.server.send("PUT", "/v1/account/recovery", {
            "currentPasswordKey": encoded(self.password_key), "recoveryKey": encoded(recovery_key),
            "keyring": encoded(saltern_1.seal_for_code(self.keyring, self.account)),
            "accountKeyring": encoded(self.keyring.sealed(self.unlock_key, self.userid)), "accountKeyringRevision": revision})
        return code

    def recover(self, code):
        recovery_key, unlock_key = saltern_1.stretch_code(code, self.salt_prefix)
        reply = self.server.send(
            "POST", "/v1/recoveries", {"userid": self.userid, "recoveryKey": encoded(recovery_key)})
        return saltern_1.open_with_code(base64.b64decode(reply["keyring"]), unlock_key, uuid.UUID(reply["accountId"]).bytes)

    def share(self, content):
        passphrase, salt, nonce = os.urandom(11).hex(), os.urandom(16), os.urandom(12)
        key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 10_000)
        reply = self.server.send("POST", "/v1/shares", {
            "format": "aes-256-gcm", "salt": encoded(salt), "iterations": 10_000,
            "sealed": encoded(nonce + AESGCM(key).encrypt(nonce, content, None))})
        return f"{URL.geturl()}{reply['path']}#{passphrase}"


def person():
    return Person((WORK / "userid").read_text().strip(), (WORK / "password").read_text().strip())


def make():
    ada = person()
    ada.register()
    # One of two edits, one without a title, lengths around where padding changes its rule, no text.
    item, revision, digest = ada.put("shopping", b"Buy salt.")
    ada.put("shopping", b"Buy salt and pepper.", item=item, edit=2, previous=digest, revision=revision)
    ada.put(None, b"No title.")
    for length in (0, 20, 21, 980, 981, 1_500, 100_000):
        ada.put(f"length {length}", b"\xc3\xa4" * (length // 2) + b"x" * (length % 2))
    ada.put("bytes \u00e4\u4e16", bytes(range(256)), "photos")
    files = WORK / "files"
    for path, content in [("a/b.txt", b"inline\n"), ("long.bin", os.urandom(CHUNK * 2 + 77)), ("empty", b"")]:
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_bytes(content)
        ada.put_file(path, content)
    (WORK / "code").write_text(ada.print_code() + "\n")
    (WORK / "link").write_text(ada.share(b"Red.") + "\n")

def read():
    ada = person()
    ada.log_in()
    known = {}
    for line in (WORK / "items.ndjson").read_text().splitlines():
        line = json.loads(line)
        if line["type"] == "document":
            body = line["text"].encode() if "text" in line else base64.b64decode(line["data"])
            known[line["id"]] = (line["collection"], line.get("title"), body)
    check(known == ada.documents(), "the kit and Python to open the same")


def recover():
    ada = person()
    ada.log_in()
    opened = ada.recover((WORK / "code").read_text().strip())
    check(opened.encoded() == ada.keyring.encoded(), "the code to open the account's keyring")


{"make": make, "read": read, "recover": recover}[sys.argv[1]]()
