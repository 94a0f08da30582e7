"""Seals and opens shares with a library of other people's.

    shares.py seal FORMAT PASSPHRASE TEXT [NAME=VALUE]…   a request's body; VALUE is JSON
    shares.py legacy PASSPHRASE TEXT                       the same, as clients from before this server seal: 1,000
                                                           iterations, 8 bytes of salt, PKCS #7 padding inside of GCM
    shares.py open PASSPHRASE < REPLY                      the text
"""

import base64
import json
import os
import sys

from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

NONCES = {"aes-256-gcm": 12, "aes-256-gcm-iv16": 16}


def key(passphrase, salt, iterations):
    return PBKDF2HMAC(hashes.SHA256(), 32, salt, iterations).derive(passphrase.encode())


def seal(kind, passphrase, plaintext, salt, iterations):
    nonce = os.urandom(NONCES[kind])
    sealed = nonce + AESGCM(key(passphrase, salt, iterations)).encrypt(nonce, plaintext, None)
    return {
        "format": kind,
        "salt": base64.b64encode(salt).decode(),
        "iterations": iterations,
        "sealed": base64.b64encode(sealed).decode(),
    }


def unseal(passphrase, share):
    sealed = base64.b64decode(share["sealed"], validate=True)
    nonce = NONCES[share["format"]]
    salt = base64.b64decode(share["salt"], validate=True)
    opened = AESGCM(key(passphrase, salt, share["iterations"])).decrypt(sealed[:nonce], sealed[nonce:], None)
    try:
        unpadder = padding.PKCS7(128).unpadder()
        return unpadder.update(opened) + unpadder.finalize()
    except ValueError:
        return opened


def main(command, *arguments):
    if command == "seal":
        kind, passphrase, text, *members = arguments
        content = seal(kind, passphrase, text.encode(), os.urandom(16), 600_000)
        content.update((name, json.loads(value)) for name, value in (member.split("=", 1) for member in members))
        print(json.dumps(content))
    elif command == "legacy":
        passphrase, text = arguments
        padder = padding.PKCS7(128).padder()
        padded = padder.update(text.encode()) + padder.finalize()
        print(json.dumps(seal("aes-256-gcm-iv16", passphrase, padded, os.urandom(8), 1_000)))
    elif command == "open":
        sys.stdout.buffer.write(unseal(arguments[0], json.load(sys.stdin)))
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
