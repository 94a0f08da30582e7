"""Sealed with other people's libraries, sent to the server and fetched again in every form that it has.

RNCryptor v3 by `rncryptor`, AES-256-GCM by `cryptography`: neither shares code with the server, or with each other. What
comes back has to be the bytes that were sent, and has to open to the text that was sealed. Called by interop.sh.
"""

import base64
import http.client
import json
import os
import ssl
import sys
import urllib.parse
import uuid
from dataclasses import dataclass

import rncryptor
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from traffic.patience import ask

URL = urllib.parse.urlsplit(os.environ["SALTERN_TEST_URL"])
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]
TOKEN = os.environ["SALTERN_TEST_TOKEN"]
TEXT_SIZES = (0, 1, 1_000, 500_000)
OCTETS = "application/octet-stream"


class Failure(Exception):
    """Something is not as it has to be."""


def check(holds, expected):
    if not holds:
        raise Failure(f"expected {expected}")


class RNCryptorV3:
    """Password mode. It has no authenticated data, so nothing binds a message to its item."""

    name = "rncryptor-v3"
    overhead = 2 + 8 + 8 + 16 + 32
    refusal = rncryptor.DecryptionError

    def __init__(self):
        self.password = "Pässwort " + os.urandom(8).hex()

    def sealed_size(self, text_size):
        return self.overhead + (text_size // 16 + 1) * 16

    def seal(self, text, item):
        return rncryptor.encrypt(text, self.password)

    def open(self, sealed, item):
        return rncryptor.decrypt(sealed, self.password)


class AES256GCM:
    """Nonce, ciphertext, tag; the item's id is authenticated along with them, as docs/protocol.md advises."""

    refusal = InvalidTag

    def __init__(self, name, nonce_size):
        self.name = name
        self.nonce_size = nonce_size
        self.key = AESGCM(AESGCM.generate_key(bit_length=256))

    def sealed_size(self, text_size):
        return self.nonce_size + text_size + 16

    def seal(self, text, item):
        nonce = os.urandom(self.nonce_size)
        return nonce + self.key.encrypt(nonce, text.encode(), item.encode())

    def open(self, sealed, item):
        nonce, rest = sealed[: self.nonce_size], sealed[self.nonce_size :]
        return self.key.decrypt(nonce, rest, item.encode()).decode()


@dataclass(frozen=True)
class Message:
    """What was stored as an item."""

    format: RNCryptorV3 | AES256GCM
    item: str
    text: str
    sealed: bytes
    sent_as: str

    def __str__(self):
        return f"{self.format.name}, {len(self.text.encode())} bytes of text, sent as {self.sent_as}"

    def check_returned(self, returned, form):
        check(returned == self.sealed, f"{self}: {form} to be byte for byte what was sent")
        try:
            opened = self.format.open(returned, self.item)
        except self.format.refusal:
            raise Failure(f"expected {self}: {form} to open") from None
        check(opened == self.text, f"{self}: {form} to open to the text")

    def check_refused(self, sealed, item, why):
        try:
            self.format.open(sealed, item)
        except self.format.refusal:
            return
        raise Failure(f"expected {self}: not to open {why}")


def text_of(size):
    """UTF-8 of exactly that many bytes, with characters of one, two, three and four of them."""
    pattern = "Zürich, 12 € für das Salz 🧂. "
    cut = (pattern * (size // len(pattern) + 1)).encode()[:size].decode(errors="ignore")
    return cut + "." * (size - len(cut.encode()))


def flipped(sealed, position):
    changed = bytearray(sealed)
    changed[position] ^= 0x01
    return bytes(changed)


class Server:
    def __init__(self):
        # Made this way, a context trusts what it is given and nothing else, and checks the host's name.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=CERTIFICATE)
        self.connection = http.client.HTTPSConnection(URL.hostname, URL.port, context=context, timeout=180)

    def request(self, method, path, status, body=None, creates=False, **headers):
        """The body and the headers of a reply that has this status."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["Authorization"] = f"Bearer {TOKEN}"
        reply = ask(self.connection, method, path, body, headers, creates=creates)
        check(reply.status == status, f"{method} {path}: status {status}, not {reply.status} {reply.body[:500]!r}")
        return reply.body, reply.fields

    def put_json(self, message):
        body = {"format": message.format.name, "body": base64.b64encode(message.sealed).decode()}
        self.request("PUT", f"/v1/items/{message.item}", 201, json.dumps(body), creates=True,
                     Content_Type="application/json", If_None_Match="*")

    def put_octets(self, message):
        self.request("PUT", f"/v1/items/{message.item}?format={message.format.name}", 201, message.sealed, creates=True,
                     Content_Type=OCTETS, If_None_Match="*")

    def get_json(self, message):
        received, _ = self.request("GET", f"/v1/items/{message.item}", 200, Accept="application/json")
        return sealed_bytes(json.loads(received), message)

    def get_octets(self, message):
        received, headers = self.request("GET", f"/v1/items/{message.item}", 200, Accept=OCTETS)
        check(headers["content-type"] == OCTETS, f"{message}: octets, not {headers['content-type']}")
        check(headers["saltern-format"] == message.format.name, f"{message}: its format in Saltern-Format")
        return received

    def changes(self):
        """Everything in the feed, page by page, in the order of the revisions."""
        changes, path, more = [], "/v1/changes?limit=5", True
        while more:
            page = json.loads(self.request("GET", path, 200)[0])
            check(page["changes"], "a page of changes that is not empty")
            changes += page["changes"]
            path, more = f"/v1/changes?limit=5&since={page['cursor']}", page["more"]
        return changes


def sealed_bytes(item, message):
    check(item["id"] == message.item, f"{message}: its item")
    check(item["format"] == message.format.name, f"{message}: its format, not {item['format']}")
    sealed = base64.b64decode(item["body"], validate=True)
    check(base64.b64encode(sealed).decode() == item["body"], f"{message}: canonical base64")
    return sealed


def store(server, format, size, sent_as, put):
    item, text = str(uuid.uuid4()), text_of(size)
    check(len(text.encode()) == size, f"a text of {size} bytes")
    message = Message(format, item, text, format.seal(text, item), sent_as)
    check(len(message.sealed) == format.sealed_size(size), f"{message}: {format.sealed_size(size)} sealed bytes")
    put(message)
    return message


def check_tampering(message, returned):
    for position in (0, len(returned) // 2, len(returned) - 1):
        message.check_refused(flipped(returned, position), message.item, f"with a bit of byte {position} flipped")
    if isinstance(message.format, AES256GCM):
        message.check_refused(returned, str(uuid.uuid4()), "as another item")


def main():
    server = Server()
    formats = (RNCryptorV3(), AES256GCM("aes-256-gcm", 12), AES256GCM("aes-256-gcm-iv16", 16))
    forms = (("JSON", server.put_json), ("octets", server.put_octets))
    messages = [store(server, format, size, *form) for format in formats for size in TEXT_SIZES for form in forms]

    changes = server.changes()
    check([change["id"] for change in changes] == [message.item for message in messages],
          "each item once in the changes feed, in the order in which they were stored")
    for message, change in zip(messages, changes, strict=True):
        octets = server.get_octets(message)
        message.check_returned(octets, "octets")
        message.check_returned(server.get_json(message), "JSON")
        message.check_returned(sealed_bytes(change, message), "the changes feed")
        check_tampering(message, octets)
    print(f"{len(messages)} messages of {len(formats)} formats")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
