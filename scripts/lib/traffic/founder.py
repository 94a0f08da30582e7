"""Entries of a shared vault's log with one member, by docs/shared-vaults-protocol.md, in plain Python."""

import hashlib
import hmac
import os
import time

PRIME = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int]


def add(left: Point | None, right: Point | None) -> Point | None:
    """The sum of two points of P-256; None is the neutral one."""
    if left is None or right is None:
        return left or right
    if left[0] == right[0]:
        if left[1] != right[1]:
            return None
        slope = (3 * left[0] * left[0] - 3) * pow(2 * left[1], -1, PRIME)
    else:
        slope = (right[1] - left[1]) * pow(right[0] - left[0], -1, PRIME)
    x = (slope * slope - left[0] - right[0]) % PRIME
    return x, (slope * (left[0] - x) - left[1]) % PRIME


def times_base(factor: int) -> Point:
    total: Point | None = None
    power: Point | None = BASE
    while factor:
        if factor & 1:
            total = add(total, power)
        power = add(power, power)
        factor >>= 1
    assert total is not None
    return total


class Key:
    def __init__(self) -> None:
        self.secret = int.from_bytes(os.urandom(40)) % (ORDER - 1) + 1
        x, y = times_base(self.secret)
        self.point = b"\x04" + x.to_bytes(32) + y.to_bytes(32)

    def sign(self, text: bytes) -> bytes:
        nonce = int.from_bytes(os.urandom(40)) % (ORDER - 1) + 1
        r = times_base(nonce)[0] % ORDER
        digest = int.from_bytes(hashlib.sha256(text).digest())
        s = pow(nonce, -1, ORDER) * (digest + r * self.secret) % ORDER
        return r.to_bytes(32) + min(s, ORDER - s).to_bytes(32)


class Founder:
    """The only member of a vault."""

    def __init__(self) -> None:
        self.member, self.signing, self.count = os.urandom(16), Key(), 0
        self.vault, self.previous = bytes(16), bytes(32)
        key = os.urandom(32)
        extracted = hmac.digest(bytes(32), key, "sha256")
        self.key_id = hmac.digest(extracted, b"saltern-1 key id\x01", "sha256")[:4]
        commitment = hmac.digest(key, b"saltern-1 vault generation\x00" + (1).to_bytes(8), "sha256")
        generation = (1).to_bytes(8) + self.key_id + commitment
        # The server opens no name.
        self.founding = self.entry(1, os.urandom(32) + self.signing.point + Key().point + generation + os.urandom(93))

    def entry(self, kind: int, content: bytes) -> bytes:
        """The next entry, which the server is to accept."""
        self.count += 1
        start = bytes([1, kind])
        rest = self.count.to_bytes(8) + self.previous + int(time.time()).to_bytes(8) + self.member + content
        if self.count == 1:
            self.vault = hashlib.sha256(start + bytes(16) + rest).digest()[:16]
        text = start + self.vault + rest
        self.previous = hashlib.sha256(text).digest()
        return text + self.signing.sign(b"saltern-1 vault entry\x00" + text)

    def invite(self, invitation: bytes) -> bytes:
        """A reader, once, within a day."""
        terms = (int(time.time()) + 86_400).to_bytes(8) + (1).to_bytes(2) + b"\x01"
        return self.entry(2, invitation + Key().point + b"\x01" + terms)

    def revoke(self, invitation: bytes) -> bytes:
        return self.entry(8, invitation)

    def seen(self) -> bytes:
        """The signature of the statement about the log's end."""
        return self.signing.sign(
            b"saltern-1 vault seen\x00" + self.vault + self.member + self.count.to_bytes(8) + self.previous
        )

    def sealed(self, size: int) -> bytes:
        """An item in form: its bytes are random."""
        return b"\x01" + self.key_id + os.urandom(12 + size + 16)
