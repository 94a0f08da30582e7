"""The format `saltern-1` in Python, by docs/protocol.md alone: nothing in it is the kit's."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import uuid

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ZEROS = bytes(16)
FIRST = bytes(32)
TITLE, BODY, CHUNK, KEYRING, RECOVERY, PASSKEY = range(1, 7)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


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


def key_id(data_key):
    return derive(data_key, b"saltern-1 key id", 4)


def part_key(data_key, part, item):
    return derive(data_key, b"saltern-1 item key" + bytes([part]) + item)


def seal(content, edit, previous, part, account, item, collection, data_key, nonce=None):
    nonce = nonce or os.urandom(12)
    plaintext = len(content).to_bytes(4, "big") + edit.to_bytes(8, "big") + previous + content
    plaintext += bytes(padded_length(len(plaintext)) - len(plaintext))
    additional = place(part, account, item, collection)
    return b"\x01" + key_id(data_key) + nonce + AESGCM(part_key(data_key, part, item)).encrypt(nonce, plaintext, additional)


def unseal(sealed, part, account, item, collection, data_keys):
    """Content, number of the edit, and SHA-256 of the edit before."""
    named = [key for key in data_keys if sealed[:5] == b"\x01" + key_id(key)]
    if not named:
        raise ValueError("no key of that name")
    plaintext = AESGCM(part_key(named[0], part, item)).decrypt(
        sealed[5:17], sealed[17:], place(part, account, item, collection))
    content = plaintext[44 : 44 + int.from_bytes(plaintext[:4], "big")]
    if len(plaintext) != padded_length(44 + len(content)) or any(plaintext[44 + len(content) :]):
        raise ValueError("no zeros behind the content")
    return content, int.from_bytes(plaintext[4:12], "big"), plaintext[12:44]


def userid_mark(userid):
    return hashlib.sha256(b"saltern-1 userid" + userid.encode()).digest()


class Keyring:
    """What the password opens."""

    def __init__(self, counter=1, vault_key=None, data_keys=None, recovery=None, passkeys=()):
        self.counter = counter
        self.vault_key = vault_key or os.urandom(32)
        self.data_keys = data_keys or [os.urandom(32)]
        # Recovery public key, authentication key, what the code opens.
        self.recovery = recovery
        # Of each: credential id, public key, authentication key.
        self.passkeys = list(passkeys)

    def encoded(self):
        text = (b"\x02" if self.passkeys else b"\x01") + self.counter.to_bytes(8, "big") + self.vault_key + len(self.data_keys).to_bytes(2, "big")
        text += b"".join(self.data_keys)
        if self.recovery is None:
            text += b"\x00"
        else:
            public, authentication, box = self.recovery
            text += b"\x01" + public + authentication + len(box).to_bytes(2, "big") + box
        if self.passkeys:
            text += bytes([len(self.passkeys)])
        for name, public, authentication in self.passkeys:
            text += len(name).to_bytes(2, "big") + name + public + authentication
        return text

    @classmethod
    def decoded(cls, text):
        count = int.from_bytes(text[41:43], "big")
        end = 43 + 32 * count
        recovery = None
        rest = text[end + 1 :]
        if text[end]:
            length = int.from_bytes(rest[97:99], "big")
            recovery = (rest[:65], rest[65:97], rest[99 : 99 + length])
            rest = rest[99 + length :]
        passkeys = []
        if text[0] == 2:
            count, rest = rest[0], rest[1:]
            for _ in range(count):
                length = int.from_bytes(rest[:2], "big") + 2
                passkeys.append((rest[2:length], rest[length : length + 65], rest[length + 65 : length + 97]))
                rest = rest[length + 97 :]
        keys = [text[first : first + 32] for first in range(43, end, 32)]
        keyring = cls(int.from_bytes(text[1:9], "big"), text[9:41], keys, recovery, passkeys)
        if text[0] not in (1, 2) or keyring.encoded() != text:
            raise ValueError("no keyring")
        return keyring

    def sealed(self, unlock_key, userid):
        key = derive(unlock_key, b"saltern-1 keyring key")
        return seal(self.encoded(), self.counter, userid_mark(userid), KEYRING, ZEROS, ZEROS, "", key)

    @classmethod
    def unsealed(cls, sealed, unlock_key):
        key = derive(unlock_key, b"saltern-1 keyring key")
        text, edit, _ = unseal(sealed, KEYRING, ZEROS, ZEROS, "", [key])
        keyring = cls.decoded(text)
        if keyring.counter != edit:
            raise ValueError("two counters")
        return keyring


# MARK: Recovery


def code_text():
    """24 random characters, and one by Luhn's algorithm for 32 digits."""
    digits = [secrets.randbelow(32) for _ in range(24)]
    total = 0
    for index, digit in enumerate(reversed(digits)):
        weighted = digit * (2 if index % 2 == 0 else 1)
        total += weighted // 32 + weighted % 32
    text = "".join(ALPHABET[digit] for digit in digits + [-total % 32])
    return "-".join(text[first : first + 5] for first in range(0, 25, 5))


def stretch_code(text, salt_prefix):
    return stretch(text.replace("-", ""), salt_prefix + "recovery", 100_000)


def _point(public):
    numbers = public.public_numbers()
    return b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")


def new_recovery(unlock_key, account):
    """What the account's keyring keeps of a code."""
    private = ec.generate_private_key(ec.SECP256R1())
    public, authentication = _point(private.public_key()), os.urandom(32)
    secret = public + private.private_numbers().private_value.to_bytes(32, "big") + authentication
    box = seal(secret, 1, FIRST, RECOVERY, account, ZEROS, "", derive(unlock_key, b"saltern-1 recovery key"))
    return public, authentication, box


def _box_key(secret, authentication, account, ephemeral, public, counter, label=b"saltern-1 recovery box"):
    return derive(secret, label + account + ephemeral + public + counter, salt=authentication)


def seal_for_code(keyring, account):
    public, authentication, box = keyring.recovery
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    counter = keyring.counter.to_bytes(8, "big")
    secret = ephemeral.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public))
    key = _box_key(secret, authentication, account, _point(ephemeral.public_key()), public, counter)
    head = b"\x01" + len(box).to_bytes(2, "big") + box + _point(ephemeral.public_key()) + counter
    nonce = os.urandom(12)
    return head + nonce + AESGCM(key).encrypt(nonce, keyring.encoded(), head)


def open_with_code(sealed, unlock_key, account):
    if sealed[0] != 1:
        raise ValueError("no recovery keyring")
    end = 3 + int.from_bytes(sealed[1:3], "big")
    box, ephemeral, counter = sealed[3:end], sealed[end : end + 65], sealed[end + 65 : end + 73]
    code_key = derive(unlock_key, b"saltern-1 recovery key")
    secret, _, _ = unseal(box, RECOVERY, account, ZEROS, "", [code_key])
    private = ec.derive_private_key(int.from_bytes(secret[65:97], "big"), ec.SECP256R1())
    public = _point(private.public_key())
    if public != secret[:65]:
        raise ValueError("another point than the private key's")
    shared = private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), ephemeral))
    key = _box_key(shared, secret[97:], account, ephemeral, public, counter)
    head = end + 73
    keyring = Keyring.decoded(AESGCM(key).decrypt(sealed[head : head + 12], sealed[head + 12 :], sealed[:head]))
    if keyring.counter != int.from_bytes(counter, "big"):
        raise ValueError("two counters")
    return keyring


# MARK: Passkeys


def passkey_key(output, account, credential):
    return derive(output, b"saltern-1 passkey key" + account + credential)


def open_with_passkey(box, sealed_private_key, output, account, credential):
    """The account's unlock key, and the public half that the keyring has."""
    secret, _, _ = unseal(sealed_private_key, PASSKEY, account, ZEROS, "", [passkey_key(output, account, credential)])
    private = ec.derive_private_key(int.from_bytes(secret[65:97], "big"), ec.SECP256R1())
    public, ephemeral, counter = secret[:65], box[1:66], box[66:74]
    if box[0] != 1 or _point(private.public_key()) != public:
        raise ValueError("no box of a passkey")
    shared = private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), ephemeral))
    key = _box_key(shared, secret[97:], account, ephemeral, public, counter, b"saltern-1 passkey box")
    return AESGCM(key).decrypt(box[74:86], box[86:], box[:74]), (public, secret[97:])


# MARK: Attachments


def chunk_id(keyring, attachment, index, content):
    key = derive(keyring.vault_key, b"saltern-1 chunk id")
    return hmac.digest(key, attachment + index.to_bytes(8, "big") + content, "sha256")[:16]


def manifest(attachment, content, chunk_size, chunks):
    """The body of a file's item; `chunks` are ids, or empty for content that is in it."""
    head = {
        "byteCount": len(content), "chunkByteCount": chunk_size, "chunks": [str(uuid.UUID(bytes=chunk)) for chunk in chunks],
        "digest": base64.b64encode(hashlib.sha256(content).digest()).decode(), "id": str(uuid.UUID(bytes=attachment)),
        "properties": {},
    }
    return b"saltern-attachment-1\n" + json.dumps(head).encode() + b"\n" + (b"" if chunks else content)


def file_content(body, chunk):
    """What a body holds that may be a file's; `chunk` opens one by its id."""
    if not body.startswith(b"saltern-attachment-1\n"):
        return body
    head, inline = body.split(b"\n", 2)[1:]
    head = json.loads(head)
    content = b"".join(chunk(name) for name in head["chunks"]) if head["chunks"] else inline
    if hashlib.sha256(content).digest() != base64.b64decode(head["digest"]) or len(content) != head["byteCount"]:
        raise ValueError("not the file that the manifest says")
    return content
