"""An authenticator and its browser, by soft-webauthn: reads options of a ceremony, prints what `toJSON()` would.

authenticator.py create|get STATE ORIGIN [--verified] <OPTIONS

STATE is a file with the passkey. soft-webauthn verifies no users: with --verified the flag is set here, and the data are
signed again with its key.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from soft_webauthn import SoftWebauthnDevice

UP, UV, AT = 0x01, 0x04, 0x40
# Where the flags are: behind the hash of the RP id.
FLAGS = 32


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def load(path: pathlib.Path) -> SoftWebauthnDevice:
    state = json.loads(path.read_text(encoding="utf-8"))
    device = SoftWebauthnDevice()
    device.credential_id = decoded(state["id"])
    device.private_key = serialization.load_pem_private_key(state["key"].encode(), None)
    device.rp_id = state["rp"]
    device.user_handle = decoded(state["user"])
    device.sign_count = state["count"]
    return device


def store(device: SoftWebauthnDevice, path: pathlib.Path) -> None:
    key = device.private_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    state = {
        "id": text(device.credential_id),
        "key": key.decode(),
        "rp": device.rp_id,
        "user": text(device.user_handle),
        "count": device.sign_count,
    }
    path.write_text(json.dumps(state), encoding="utf-8")


def create(options: dict, origin: str, is_verified: bool, path: pathlib.Path) -> dict:
    device = SoftWebauthnDevice()
    options["user"]["id"] = decoded(options["user"]["id"])
    made = device.create({"publicKey": options}, origin)["response"]
    store(device, path)
    attested = made["attestationObject"]
    if is_verified:
        # Nothing signs an attestation that is none.
        start = attested.index(hashlib.sha256(device.rp_id.encode()).digest())
        attested = bytearray(attested)
        attested[start + FLAGS] = UP | UV | AT
    return credential(
        device,
        {
            "clientDataJSON": text(made["clientDataJSON"]),
            "attestationObject": text(bytes(attested)),
            "publicKeyAlgorithm": -7,
        },
    )


def get(options: dict, origin: str, is_verified: bool, path: pathlib.Path) -> dict:
    device = load(path)
    made = device.get({"publicKey": options}, origin)["response"]
    store(device, path)
    data, signature = made["authenticatorData"], made["signature"]
    if is_verified:
        data = data[:FLAGS] + bytes([UP | UV]) + data[FLAGS + 1 :]
        signed = data + hashlib.sha256(made["clientDataJSON"]).digest()
        signature = device.private_key.sign(signed, ec.ECDSA(hashes.SHA256()))
    return credential(
        device,
        {
            "clientDataJSON": text(made["clientDataJSON"]),
            "authenticatorData": text(data),
            "signature": text(signature),
            "userHandle": text(made["userHandle"]),
        },
    )


def credential(device: SoftWebauthnDevice, response: dict) -> dict:
    return {
        "id": text(device.credential_id),
        "rawId": text(device.credential_id),
        "type": "public-key",
        "response": response,
        "clientExtensionResults": {},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ceremony", choices=["create", "get"])
    parser.add_argument("state", type=pathlib.Path)
    parser.add_argument("origin")
    parser.add_argument("--verified", action="store_true")
    arguments = parser.parse_args()
    options = json.load(sys.stdin)
    options["challenge"] = decoded(options["challenge"])
    ceremony = create if arguments.ceremony == "create" else get
    print(json.dumps(ceremony(options, arguments.origin, arguments.verified, arguments.state)))


if __name__ == "__main__":
    main()
