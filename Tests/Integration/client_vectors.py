"""Every step of a client in Python, by docs/protocol.md alone, held against docs/vectors.json, which the kit has made."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import sys
import uuid

import rncryptor
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from saltern_1 import (
    BODY, FIRST, KEYRING, ZEROS, Keyring, derive, open_with_code, open_with_passkey, passkey_key, seal, stretch, unseal, userid_mark)

ROOT = pathlib.Path(__file__).parents[2]


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def check_keys(vectors):
    step = vectors["stretch"]
    password_key, unlock_key = stretch(step["password"], step["salt"], step["iterations"])
    check(password_key.hex() == step["passwordKey"] and unlock_key.hex() == step["unlockKey"], "both blocks of the password")
    keyring_key = derive(unlock_key, b"saltern-1 keyring key")
    check(keyring_key.hex() == vectors["keyring"]["key"], "the key of the keyring")
    step = vectors["recoveryCode"]
    recovery_key, unlock_key = stretch(step["code"].replace("-", ""), step["salt"], step["iterations"])
    check(recovery_key.hex() == step["recoveryKey"] and unlock_key.hex() == step["unlockKey"], "both blocks of the code")
    code_key = derive(unlock_key, b"saltern-1 recovery key")
    check(code_key.hex() == step["codeKey"], "the key under the code")
    return keyring_key, unlock_key


def check_gcm(step):
    """docs/protocol.md has it too, in "Sealed formats"."""
    additional = step["item"].encode()
    check(additional.hex() == step["additional"] and len(additional) == 36, "the text of the item's id")
    sealed = bytes(range(12)) + AESGCM(bytes.fromhex(step["key"])).encrypt(bytes(range(12)), step["content"].encode(), additional)
    check(sealed.hex() == step["sealed"], "the sealed text of docs/protocol.md")
    check(f"\n{sealed.hex()}\n" in (ROOT / "docs/protocol.md").read_text(encoding="utf-8"), "docs/protocol.md to have it")


def check_item(step):
    data_key, account, item = bytes.fromhex(step["dataKey"]), uuid.UUID(step["account"]).bytes, uuid.UUID(step["item"]).bytes
    sealed = seal(
        step["content"].encode(), 1, FIRST, BODY, account, item, step["collection"], data_key, bytes(range(12)))
    check(sealed.hex() == step["sealed"], "the sealed item")
    opened = unseal(sealed, BODY, account, item, step["collection"], [data_key])
    check(opened == (step["content"].encode(), 1, FIRST), "its content")
    additional = b"saltern-1" + bytes([1, 2]) + account + item + bytes([0, 5]) + step["collection"].encode()
    check(additional.hex() == step["additional"], "the additional data of the item")
    check(sealed[1:5].hex() == step["keyId"], "the key's name")


def check_keyring(step, key):
    plaintext = bytes.fromhex(step["plaintext"])
    mark = userid_mark(step["userid"])
    check(mark.hex() == step["useridMark"], "the mark of the userid")
    sealed = seal(plaintext, int(step["counter"]), mark, KEYRING, ZEROS, ZEROS, "", key, bytes(range(12, 24)))
    check(sealed.hex() == step["sealed"], "the sealed keyring")
    check(b"".join(Keyring.decoded(plaintext).data_keys) == bytes(range(64)), "two data keys in it")


def check_recovery(sealed, unlock_key, account):
    keyring = open_with_code(sealed, unlock_key, account)
    check(keyring.counter == 7, "the counter of the keyring that the code opens")
    check(b"".join(keyring.data_keys) == bytes(range(64)), "the data keys that the code opens")


def check_passkey(step, random):
    salt = hashlib.sha256(b"WebAuthn PRF\x00" + step["input"].encode()).hexdigest()
    check(step["salt"] == salt, "the salt of a security key")
    output, account, credential = bytes.fromhex(step["output"]), uuid.UUID(step["account"]).bytes, bytes.fromhex(
        step["credentialId"])
    check(passkey_key(output, account, credential).hex() == step["key"], "the key under the passkey's output")
    unlock_key, public_half = open_with_passkey(
        bytes.fromhex(random["passkeyBox"]), bytes.fromhex(random["passkeySealedPrivateKey"]), output, account, credential)
    check(unlock_key == bytes(range(32)), "the unlock key that the passkey opens")
    keyring = Keyring.decoded(bytes.fromhex(random["passkeyKeyring"]))
    check(keyring.passkeys == [(credential, *public_half)], "the public half in the keyring")


def check_share(step, sealed):
    key = hashlib.pbkdf2_hmac("sha256", step["passphrase"].encode(), bytes.fromhex(step["salt"]), int(step["iterations"]))
    check(key.hex() == step["key"], "the key of the share")
    check(AESGCM(key).decrypt(sealed[:12], sealed[12:], None).decode() == step["content"], "what was shared")


class FixedRNCryptor(rncryptor.RNCryptor):
    """Password mode with the vectors' numbers in the place of random ones."""

    encryption_salt, hmac_salt, iv = bytes(range(100, 108)), bytes(range(108, 116)), bytes(range(32, 48))


def check_rncryptor(step):
    """`rncryptor` has the password mode only; the key mode is by `cryptography`."""
    message = bytes.fromhex(step["passwordMode"])
    check(rncryptor.decrypt(message, step["password"]) == step["content"], "the content under the password")
    check(FixedRNCryptor().encrypt(step["content"], step["password"]) == message, "the same bytes of rncryptor")
    message, key = bytes.fromhex(step["keyMode"]), bytes.fromhex(step["encryptionKey"])
    head, code = message[:-32], message[-32:]
    check(hmac.digest(bytes.fromhex(step["authenticationKey"]), head, "sha256") == code, "the code of the key mode")
    opening = Cipher(algorithms.AES(key), modes.CBC(head[2:18])).decryptor()
    padding = PKCS7(128).unpadder()
    content = padding.update(opening.update(head[18:]) + opening.finalize()) + padding.finalize()
    check(head[:2] == b"\x03\x00" and content.decode() == step["content"], "the content under the keys")


def check_device_token():
    """Opaque to clients; of the form that the documents show: version, account, slot, generation, code."""
    description = (ROOT / "openapi.yaml").read_text(encoding="utf-8")
    token = re.search(r"deviceToken: sld_([\w-]+)", description)[1]
    account = uuid.UUID(re.search(r"accountId: ([\w-]+)", description)[1]).bytes
    name = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    check(len(name) == 58 and name[0] == 1 and name[1:17] == account and name[17] < 16, "the device token of the examples")


def main():
    vectors = json.loads((ROOT / "docs/vectors.json").read_text(encoding="utf-8"))
    keyring_key, unlock_key = check_keys(vectors)
    check_gcm(vectors["gcm"])
    check_item(vectors["item"])
    check_keyring(vectors["keyring"], keyring_key)
    account = uuid.UUID(vectors["item"]["account"]).bytes
    check_recovery(bytes.fromhex(vectors["random"]["recoveryKeyring"]), unlock_key, account)
    check_passkey(vectors["passkey"], vectors["random"])
    check_share(vectors["share"], bytes.fromhex(vectors["random"]["share"]))
    check_rncryptor(vectors["rncryptor"])
    check_device_token()


main()
