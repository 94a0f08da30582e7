"""Every step of a client in Python, by docs/clients.md alone, held against docs/vectors.json, which the kit has made."""

import base64
import hashlib
import json
import pathlib
import re
import sys
import uuid

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ROOT = pathlib.Path(__file__).parents[2]
ZEROS = bytes(16)


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def stretch(text, salt, iterations):
    """Two blocks: one for the server, one that stays."""
    output = hashlib.pbkdf2_hmac("sha256", text.encode(), salt.encode(), int(iterations), 64)
    return output[:32], output[32:]


def derive(key, info, length=32, salt=None):
    return HKDF(hashes.SHA256(), length, salt, info).derive(key)


def padded_length(length):
    if length <= 1024:
        return -(-length // 64) * 64
    exponent = length.bit_length() - 1
    unit = 1 << (exponent - exponent.bit_length())
    return -(-length // unit) * unit


def place(part, account, item, collection):
    name = collection.encode()
    return b"saltern-1\x01" + bytes([part]) + account + item + len(name).to_bytes(2, "big") + name


def seal(content, edit, previous, part, account, item, collection, data_key, nonce):
    plaintext = len(content).to_bytes(4, "big") + edit.to_bytes(8, "big") + previous + content
    plaintext += bytes(padded_length(len(plaintext)) - len(plaintext))
    key = derive(data_key, b"saltern-1 item key" + bytes([part]) + item)
    head = b"\x01" + derive(data_key, b"saltern-1 key id", 4) + nonce
    return head + AESGCM(key).encrypt(nonce, plaintext, place(part, account, item, collection))


def unseal(sealed, part, account, item, collection, data_key):
    check(sealed[:5] == b"\x01" + derive(data_key, b"saltern-1 key id", 4), "the key's name")
    key = derive(data_key, b"saltern-1 item key" + bytes([part]) + item)
    plaintext = AESGCM(key).decrypt(sealed[5:17], sealed[17:], place(part, account, item, collection))
    content = plaintext[44 : 44 + int.from_bytes(plaintext[:4], "big")]
    check(not any(plaintext[44 + len(content) :]), "zeros behind the content")
    return content


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
    return keyring_key, code_key


def check_item(step):
    data_key, account, item = bytes.fromhex(step["dataKey"]), uuid.UUID(step["account"]).bytes, uuid.UUID(step["item"]).bytes
    sealed = seal(step["content"].encode(), 1, bytes(32), 2, account, item, step["collection"], data_key, bytes(range(12)))
    check(sealed.hex() == step["sealed"], "the sealed item")
    check(unseal(sealed, 2, account, item, step["collection"], data_key) == step["content"].encode(), "its content")
    check(sealed[1:5].hex() == step["keyId"], "the key's name")


def check_keyring(step, key):
    plaintext = bytes.fromhex(step["plaintext"])
    sealed = seal(plaintext, int(step["counter"]), bytes(32), 4, ZEROS, ZEROS, "", key, bytes(range(12, 24)))
    check(sealed.hex() == step["sealed"], "the sealed keyring")
    check(plaintext[9 + 32 + 2 : -1] == bytes(range(64)), "two data keys in it")


def check_recovery(sealed, code_key, account):
    length = int.from_bytes(sealed[1:3], "big")
    box, rest = sealed[3 : 3 + length], sealed[3 + length :]
    secret = unseal(box, 5, account, ZEROS, "", code_key)
    private = ec.derive_private_key(int.from_bytes(secret[65:97], "big"), ec.SECP256R1())
    ephemeral = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), rest[:65])
    numbers = private.public_key().public_numbers()
    public = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    check(public == secret[:65], "the point of the private key")
    info = b"saltern-1 recovery box" + account + rest[:65] + public + rest[65:73]
    key = derive(private.exchange(ec.ECDH(), ephemeral), info, salt=secret[97:])
    head = len(sealed) - len(rest) + 73
    keyring = AESGCM(key).decrypt(sealed[head : head + 12], sealed[head + 12 :], sealed[:head])
    check(keyring[:9] == b"\x01" + (7).to_bytes(8, "big"), "version and counter of the keyring that the code opens")
    check(keyring[43:107] == bytes(range(64)), "the data keys that the code opens")


def check_share(step, sealed):
    key = hashlib.pbkdf2_hmac("sha256", step["passphrase"].encode(), bytes.fromhex(step["salt"]), int(step["iterations"]))
    check(key.hex() == step["key"], "the key of the share")
    check(AESGCM(key).decrypt(sealed[:12], sealed[12:], None).decode() == step["content"], "what was shared")


def check_device_token():
    """Opaque to clients; of the form that the documents show: version, account, slot, generation, code."""
    description = (ROOT / "openapi.yaml").read_text(encoding="utf-8")
    token = re.search(r"deviceToken: sld_([\w-]+)", description)[1]
    account = uuid.UUID(re.search(r"accountId: ([\w-]+)", description)[1]).bytes
    name = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    check(len(name) == 58 and name[0] == 1 and name[1:17] == account and name[17] < 16, "the device token of the examples")


def main():
    vectors = json.loads((ROOT / "docs/vectors.json").read_text(encoding="utf-8"))
    keyring_key, code_key = check_keys(vectors)
    check_item(vectors["item"])
    check_keyring(vectors["keyring"], keyring_key)
    account = uuid.UUID(vectors["item"]["account"]).bytes
    check_recovery(bytes.fromhex(vectors["random"]["recoveryKeyring"]), code_key, account)
    check_share(vectors["share"], bytes.fromhex(vectors["random"]["share"]))
    check_device_token()


main()
