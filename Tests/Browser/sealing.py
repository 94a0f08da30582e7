"""Seals shares by docs/protocol.md, with the library `cryptography`, and checks the vectors with two libraries."""

import base64
import hashlib
import json
import os
import pathlib
import secrets
import string

from Crypto.Cipher import AES
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

VECTORS = pathlib.Path(__file__).with_name("share-vectors.json")
IV_LENGTHS = {"aes-256-gcm": 12, "aes-256-gcm-iv16": 16}


def passphrase(length=22):
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))


def stretch(phrase, salt, iterations):
    return PBKDF2HMAC(hashes.SHA256(), 32, salt, iterations).derive(phrase.encode())


def padded(plaintext):
    padder = padding.PKCS7(128).padder()
    return padder.update(plaintext) + padder.finalize()


def encoded(data):
    return base64.b64encode(data).decode()


def seal(plaintext, phrase, form="aes-256-gcm", iterations=1_000, salt_length=16, pad=False):
    """What `POST /v1/shares` takes."""
    if isinstance(plaintext, str):
        plaintext = plaintext.encode()
    salt, iv = os.urandom(salt_length), os.urandom(IV_LENGTHS[form])
    sealed = iv + AESGCM(stretch(phrase, salt, iterations)).encrypt(iv, padded(plaintext) if pad else plaintext, None)
    return {"format": form, "salt": encoded(salt), "iterations": iterations, "sealed": encoded(sealed)}


def vectors():
    """The committed vectors, each of which two libraries make alike."""
    found = json.loads(VECTORS.read_text())["vectors"]
    for vector in found:
        salt, iv, key = (bytes.fromhex(vector[name]) for name in ("salt", "iv", "key"))
        plaintext = vector["plaintext"].encode()
        if vector["pkcs7"]:
            plaintext = padded(plaintext)
        assert stretch(vector["passphrase"], salt, vector["iterations"]) == key, vector["name"]
        assert hashlib.pbkdf2_hmac("sha256", vector["passphrase"].encode(), salt, vector["iterations"], 32) == key
        sealed = base64.b64decode(vector["share"]["sealed"], validate=True)
        assert len(iv) == IV_LENGTHS[vector["share"]["format"]], vector["name"]
        assert iv + AESGCM(key).encrypt(iv, plaintext, None) == sealed, vector["name"]
        ciphertext, tag = AES.new(key, AES.MODE_GCM, nonce=iv).encrypt_and_digest(plaintext)
        assert iv + ciphertext + tag == sealed, vector["name"]
        assert vector["share"] == {
            "format": vector["share"]["format"], "salt": encoded(salt), "iterations": vector["iterations"],
            "sealed": encoded(sealed),
        }, vector["name"]
    return found
