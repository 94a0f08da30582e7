"""A member of a shared vault with its keys, which writes entries and items by docs/shared-vaults-protocol.md alone."""

import base64
import secrets
import time

import saltern_1
import vault_log
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from vault_log import Entry, Invitation, label, number

BODY_PART = 17


def base64_of(raw):
    return base64.b64encode(raw).decode()


def sign(private, text):
    r, s = decode_dss_signature(private.sign(text, ec.ECDSA(hashes.SHA256())))
    return number(r, 32) + number(min(s, vault_log.ORDER - s), 32)


def generation(key, place):
    return number(place) + vault_log.key_id(key) + vault_log.commitment(key, place)


class Person:
    def __init__(self, name, token):
        self.name, self.token, self.member = name, token, secrets.token_bytes(16)
        self.signing, self.agreement = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))

    @property
    def keys(self):
        return vault_log.point_of(self.signing) + vault_log.point_of(self.agreement)

    def sealed_name(self, key):
        return vault_log.gcm(vault_log.name_key(key), vault_log.padded(self.name), secrets.token_bytes(12), self.member)

    def entry(self, log, kind, content, admission=None):
        """The next entry of a log, or the first one."""
        place = len(log.hashes) + 1 if log else 1
        previous = log.hashes[-1] if log else bytes(32)
        start = bytes([1, vault_log.KINDS.index(kind)])
        rest = number(place) + previous + number(int(time.time())) + self.member + content
        vault = log.vault if log else vault_log.sha(start + bytes(16) + rest)[:16]
        text = start + vault + rest
        if admission:
            text += sign(admission, label("saltern-1 vault admission", text))
        return Entry(text + sign(self.signing, label("saltern-1 vault entry", text)))

    def found(self, key):
        """The first entry of a vault."""
        return self.entry(None, "found", secrets.token_bytes(32) + self.keys + generation(key, 1) + self.sealed_name(key))

    def invite(self, log, key, vault_name, invitation, made, role, uses=1, has_code=False):
        """An entry that opens an invitation for a day, and the body of its request. `made` has the keys of its link."""
        admission = vault_log.point_of(vault_log.private_key(made.admission))
        terms = bytes([role]) + number(int(time.time()) + 86_400) + number(uses, 2) + (b"\x02" if has_code else b"\x01")
        entry = self.entry(log, "invite", invitation + admission + terms)
        preview = vault_log.padded(vault_name) + vault_log.padded(self.name) + vault_log.name_key(key)
        return entry, {
            "entry": base64_of(entry.raw), "tokenHash": base64_of(vault_log.sha(made.token)),
            "preview": base64_of(vault_log.gcm(made.preview_key, preview, secrets.token_bytes(12))),
            "keyBox": base64_of(vault_log.gcm(made.key_key, key, secrets.token_bytes(12)))}

    def join(self, log, key, invitation, made: Invitation):
        admission = vault_log.private_key(made.admission)
        return self.entry(log, "join", self.keys + invitation + self.sealed_name(key), admission)

    def sealed_item(self, log, key, item, collection, text):
        """A first version."""
        about = vault_log.statement(log.vault, item, collection, 1, bytes(32), self.member, log.head, None, text)
        body = self.member + log.head + sign(self.signing, label("saltern-1 vault edit", about)) + text
        return saltern_1.seal(body, 1, bytes(32), BODY_PART, log.vault, item, collection, key)


def previous_key(vault, place, key, former):
    """The former key, sealed under the key of the generation with this number."""
    under = vault_log.derive(key, "saltern-1 vault previous key", vault, number(place))
    return vault_log.gcm(under, former, secrets.token_bytes(12))


def box(vault, place, key, member, agreement):
    """The key of a generation for a member. The agreement key is public."""
    return vault_log.seal_box(key, vault, place, member, agreement, ec.generate_private_key(ec.SECP256R1()))
