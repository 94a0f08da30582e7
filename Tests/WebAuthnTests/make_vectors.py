"""Makes vectors.json: registrations and assertions for the tests of the target WebAuthn.

The group `specification` contains test vectors of WebAuthn Level 3 (section "Test Vectors"), derived as it says: HKDF-SHA-256
of "WebAuthn test vectors" with the name as info and a counting salt, and deterministic ECDSA. Digests of values that the
specification prints are compared. Where it has certificates (EdDSA, RS256), the statement is `none` here, and the data that
are signed are the specification's.

The group `own` has cases that it lacks: an RSA key of 2,048 bits, sign counts, and outputs of the PRF extension. Its RSA key
is new each time.

usage: make_vectors.py >vectors.json
"""

import base64
import hashlib
import itertools
import json
import sys
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


RP_ID_HASH = hashlib.sha256(b"example.org").digest()
UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
Signer = Callable[[bytes], bytes]

# SHA-256 of the attestation object and the signature of none.ES256, as the specification prints them.
PUBLISHED = {
    "attestationObject": hashlib.sha256(
        bytes.fromhex(
            "a363666d74646e6f6e656761747453746d74a068617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5"
            "e0f01452b2e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94"
            "ff3ec330084be4a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61225820930a56"
            "b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220"
        )
    ).digest(),
    "signature": hashlib.sha256(
        bytes.fromhex(
            "3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f575bf11a1dd"
            "5d78c6e486013f937295ea13653e331e87"
        )
    ).digest(),
}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def head(major: int, number: int) -> bytes:
    """The shortest head of a CBOR item."""
    for code, size in ((24, 1), (25, 2), (26, 4)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < 1 << (8 * size):
            return bytes([major << 5 | code]) + number.to_bytes(size)
    raise ValueError(number)


def cbor(value: int | bytes | str | bool | dict) -> bytes:
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    return head(5, len(value)) + b"".join(cbor(name) + cbor(member) for name, member in value.items())


class Random:
    """The deterministic random bytes of one vector."""

    def __init__(self, name: str) -> None:
        self.name, self.salts = name, itertools.count()

    def bytes(self, count: int) -> bytes:
        salt = bytes([next(self.salts)])
        return HKDF(hashes.SHA256(), count, salt, self.name.encode()).derive(b"WebAuthn test vectors")


def client_data(random: Random, kind: str, challenge: bytes, cross_origin: bool, top_origin: bool) -> bytes:
    members = {
        "type": kind,
        "challenge": base64url(challenge),
        "origin": "https://example.org",
        "crossOrigin": cross_origin,
    }
    has_more = random.bytes(1)[0] & 1
    if top_origin:
        members["topOrigin"] = "https://example.com"
    if has_more:
        extra = base64url(random.bytes(16))
        members["extraData"] = (
            f"clientDataJSON may be extended with additional fields in the future, such as this: {extra}"
        )
    return json.dumps(members, separators=(",", ":")).encode()


def data(flags: int, count: int, rest: bytes = b"") -> bytes:
    return RP_ID_HASH + bytes([flags]) + count.to_bytes(4) + rest


def ecdsa(random: Random) -> tuple[int, bytes, Signer]:
    key = ec.derive_private_key(int.from_bytes(random.bytes(32)), ec.SECP256R1())
    point = key.public_key().public_numbers()
    public = cbor({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)})
    return -7, public, lambda text: key.sign(text, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def eddsa(random: Random) -> tuple[int, bytes, Signer]:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(random.bytes(32))
    return -8, cbor({1: 1, 3: -8, -1: 6, -2: key.public_key().public_bytes_raw()}), key.sign


def rsa_signer(key: rsa.RSAPrivateKey) -> tuple[int, bytes, Signer]:
    numbers = key.public_key().public_numbers()
    modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)
    public = cbor({1: 3, 3: -257, -1: modulus, -2: numbers.e.to_bytes(3)})
    return -257, public, lambda text: key.sign(text, padding.PKCS1v15(), hashes.SHA256())


def mersenne(_: Random) -> tuple[int, bytes, Signer]:
    """The RSA key of the specification, of 3,482 bits."""
    p, q, e = 2**1279 - 1, 2**2203 - 1, 65537
    d = rsa.rsa_recover_private_exponent(e, p, q)
    return rsa_signer(
        rsa.RSAPrivateNumbers(
            p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), rsa.RSAPublicNumbers(e, p * q)
        ).private_key()
    )


def new_rsa(_: Random) -> tuple[int, bytes, Signer]:
    return rsa_signer(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def vector(
    name: str,
    make: Callable[[Random], tuple[int, bytes, Signer]],
    *,
    id_count: int = 32,
    cross_origin: bool = False,
    top_origin: bool = False,
    statement: str = "none",
    certificates: bool = False,
    counts: tuple[int, int] = (0, 0),
    created: bytes = b"",
    asserted: bytes = b"",
) -> dict:
    random = Random(name)
    challenge = random.bytes(32)
    algorithm, public, sign = make(random)
    client = client_data(random, "webauthn.create", challenge, cross_origin, top_origin)
    aaguid, credential_id = random.bytes(16), random.bytes(id_count)
    flags = random.bytes(1)[0] & (UV | BE | BS)
    if not flags & BE:
        flags &= ~BS
    attested = aaguid + len(credential_id).to_bytes(2) + credential_id + public
    signed = data(flags | UP | AT | (ED if created else 0), counts[0], attested + created)
    claim: dict = {}
    if statement == "packed":
        claim = {"alg": algorithm, "sig": sign(signed + hashlib.sha256(client).digest())}
    if certificates:
        # A key and a serial number of the certificate, which are not used here.
        random.bytes(32), random.bytes(16)
    registration = {
        "challenge": challenge,
        "credentialId": credential_id,
        "publicKeyAlgorithm": algorithm,
        "clientDataJSON": client,
        "attestationObject": cbor({"fmt": statement, "attStmt": claim, "authData": signed}),
    }
    challenge = random.bytes(32)
    client = client_data(random, "webauthn.get", challenge, cross_origin, top_origin)
    now = random.bytes(1)[0] & (UV | BS)
    if not flags & BE:
        now &= ~BS
    signed = data(flags & BE | now | UP | (ED if asserted else 0), counts[1], asserted)
    assertion = {
        "challenge": challenge,
        "clientDataJSON": client,
        "authenticatorData": signed,
        "signature": sign(signed + hashlib.sha256(client).digest()),
    }
    return {"name": name, "registration": registration, "assertion": assertion}


def main() -> None:
    specification = [
        vector("none.ES256", ecdsa),
        vector("packed-self.ES256", ecdsa, statement="packed"),
        vector("none.ES256.crossOrigin", ecdsa, cross_origin=True),
        vector("none.ES256.topOrigin", ecdsa, cross_origin=True, top_origin=True),
        vector("none.ES256.long-credential-id", ecdsa, id_count=1023),
        vector("packed.RS256", mersenne, certificates=True),
        vector("packed.EdDSA", eddsa, certificates=True),
    ]
    first = specification[0]
    found = {**first["registration"], **first["assertion"]}
    for name, digest in PUBLISHED.items():
        if hashlib.sha256(found[name]).digest() != digest:
            sys.exit(f"{name} is not what the specification prints")
    own = [
        vector("RS256 of 2,048 bits", new_rsa),
        vector("ES256 with a sign count", ecdsa, counts=(4, 5)),
        vector(
            "ES256 with PRF",
            ecdsa,
            created=cbor({"hmac-secret": True, "credProtect": 2}),
            asserted=cbor({"hmac-secret": bytes(range(48))}),
        ),
        vector("EdDSA with PRF", eddsa, asserted=cbor({"hmac-secret": bytes(range(80))})),
        vector("ES256 with credBlob", ecdsa, asserted=cbor({"credBlob": b"blob"})),
        vector("ES256 with an unknown extension", ecdsa, asserted=cbor({"example.unknown": {"a": True}})),
    ]
    json.dump({"specification": specification, "own": own}, sys.stdout, indent=2, default=base64url)
    print()


if __name__ == "__main__":
    main()
