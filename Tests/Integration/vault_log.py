"""Shared vaults in Python, by docs/shared-vaults-protocol.md alone: nothing in it is the module's."""

import hashlib
import hmac

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
READER, WRITER, MANAGER = 1, 2, 3
KINDS = ["", "found", "invite", "join", "role", "remove", "leave", "rotate", "revoke", "seal", "offer", "accept", "rekey"]
# Of entries by managers: their times decide about expiry.
MANAGING = {"found", "invite", "role", "remove", "rotate", "revoke", "seal", "offer", "accept"}
# The first number that only winds the vault down.
LATE = 3073
ZEROS = bytes(32)


class Refused(Exception):
    """The reason is the only argument."""


def require(holds, reason):
    if not holds:
        raise Refused(reason)


# MARK: Primitives


def label(text, *fields):
    return text.encode() + b"\x00" + b"".join(fields)


def sha(message):
    return hashlib.sha256(message).digest()


def hkdf(key, info, length=32):
    return HKDF(hashes.SHA256(), length, None, info).derive(key)


def derive(key, text, *fields):
    return hkdf(key, label(text, *fields))


def number(value, length=8):
    return value.to_bytes(length, "big")


def gcm(key, content, nonce, additional=b""):
    return nonce + AESGCM(key).encrypt(nonce, content, additional)


def open_gcm(key, sealed, additional=b""):
    return AESGCM(key).decrypt(sealed[:12], sealed[12:], additional)


def public_key(point):
    require(len(point) == 65 and point[0] == 4, "malformed")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError as error:
        raise Refused("malformed") from error


def private_key(secret):
    return ec.derive_private_key(int.from_bytes(secret, "big"), ec.SECP256R1())


def point_of(private):
    numbers = private.public_key().public_numbers()
    return b"\x04" + number(numbers.x, 32) + number(numbers.y, 32)


def check_form(signature):
    """Low s only."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    require(len(signature) == 64 and 1 <= r < ORDER and 1 <= s <= ORDER // 2, "malformed")


def has_signed(point, signature, text):
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    try:
        public_key(point).verify(encode_dss_signature(r, s), text, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def base62(content):
    value, text = int.from_bytes(content, "big"), ""
    for _ in range(22):
        value, digit = divmod(value, 62)
        text = BASE62[digit] + text
    return text


def words_of(content, count, all_words):
    bits = int.from_bytes(content, "big") >> (8 * len(content) - 11 * count)
    return " ".join(all_words[bits >> 11 * (count - 1 - place) & 2047] for place in range(count))


# MARK: Entries


class Entry:
    def __init__(self, raw):
        self.raw = raw
        require(len(raw) >= 146 and raw[0] == 1 and 1 <= raw[1] <= 12, "malformed")
        self.kind = KINDS[raw[1]]
        self.vault, self.number, self.previous = raw[2:18], int.from_bytes(raw[18:26], "big"), raw[26:58]
        self.time, self.author = int.from_bytes(raw[58:66], "big"), raw[66:82]
        self.text, self.signature, self.rest = raw[:-64], raw[-64:], raw[82:-64]
        self.hash = sha(self.text)
        check_form(self.signature)
        require(1 <= self.number <= 4096 and (self.number == 1) == (self.kind == "found"), "malformed")
        require(self.time <= 253_402_300_799, "malformed")
        getattr(self, "read_" + self.kind)()
        require(not self.rest, "malformed")

    def take(self, length):
        require(len(self.rest) >= length, "malformed")
        field, self.rest = self.rest[:length], self.rest[length:]
        return field

    def take_number(self, length, least, most):
        value = int.from_bytes(self.take(length), "big")
        require(least <= value <= most, "malformed")
        return value

    def take_key(self):
        point = self.take(65)
        public_key(point)
        return point

    def take_keys(self):
        self.signing, self.agreement = self.take_key(), self.take_key()
        require(self.signing != self.agreement, "malformed")

    def take_signature(self):
        signature = self.take(64)
        check_form(signature)
        return signature

    def take_generation(self):
        self.generation = (self.take_number(8, 1, 4096), self.take(4), self.take(32))

    def read_found(self):
        self.take(32)
        self.take_keys()
        self.take_generation()
        require(self.generation[0] == 1, "malformed")
        self.name = self.take(93)

    def read_invite(self):
        self.invitation, self.admission_key, self.role = self.take(16), self.take_key(), self.take_number(1, 1, 3)
        self.expiry, self.uses = self.take_number(8, 0, 253_402_300_799), self.take_number(2, 1, 32)
        self.has_code = self.take_number(1, 1, 2) == 2

    def read_join(self):
        self.take_keys()
        self.invitation, self.name = self.take(16), self.take(93)
        self.inner, self.admission = self.raw[:-128], self.take_signature()

    def read_role(self):
        self.member, self.role = self.take(16), self.take_number(1, 1, 3)

    def read_remove(self):
        self.take_generation()
        self.members = [self.take(16) for _ in range(self.take_number(2, 1, 128))]
        require(self.members == sorted(set(self.members)), "malformed")

    def read_leave(self):
        pass

    def read_rotate(self):
        self.take_generation()

    def read_revoke(self):
        self.invitation = self.take(16)

    def read_seal(self):
        self.sealed, self.count, self.digest = self.take(16), self.take_number(4, 0, 1 << 24), self.take(32)

    def read_offer(self):
        self.member = self.take(16)

    def read_accept(self):
        self.offer = self.take_number(8, 1, 4096)

    def read_rekey(self):
        self.take_keys()
        self.inner, self.possession = self.raw[:-128], self.take_signature()


# MARK: The log


class Member:
    def __init__(self, entry, role, invitation):
        self.joined, self.invitation = entry.number, invitation
        self.name = entry.name
        # Each with the number of the entry.
        self.roles = [(entry.number, role)]
        self.keys = [(entry.number, entry.signing, entry.agreement)]

    @property
    def role(self):
        return self.roles[-1][1]

    def role_at(self, head):
        return next((role for since, role in reversed(self.roles) if since <= head), None)

    def key_at(self, head):
        return next((key for since, key, _ in reversed(self.keys) if since <= head), None)

    def cut(self, head):
        """The entry that decides about edits with this head."""
        rekey = next((since for since, _, _ in self.keys[1:] if since > head), None)
        if rekey is not None and (self.role_at(rekey) or 0) >= WRITER:
            return rekey
        if rekey is None and (self.role or 0) >= WRITER:
            return None
        losses = [
            since for (_, former), (since, role) in zip(self.roles, self.roles[1:], strict=False)
            if (former or 0) >= WRITER > (role or 0) and (rekey is None or since < rekey)]
        return losses[-1]


class Log:
    def __init__(self, founding):
        require(founding.kind == "found", "wrongNumber")
        require(founding.previous == ZEROS, "wrongPrevious")
        require(founding.vault == sha(founding.text[:2] + bytes(16) + founding.text[18:])[:16], "wrongVault")
        require(has_signed(founding.signing, founding.signature, label("saltern-1 vault entry", founding.text)), "wrongSignature")
        self.vault, self.owner, self.offer = founding.vault, founding.author, None
        self.hashes, self.times, self.rotation_due = [founding.hash], {founding.author: founding.time}, False
        self.members = {founding.author: Member(founding, MANAGER, None)}
        self.generations = [founding.generation]
        self.starts = [1]
        self.used_keys = {founding.signing, founding.agreement}
        # By author, the number of the last entry that cut it off, and by manager the last seal.
        self.invitations, self.cuts, self.seals, self.late_seals = {}, {}, {}, 0

    @property
    def head(self):
        return number(len(self.hashes)) + self.hashes[-1]

    def present(self):
        return [name for name, member in self.members.items() if member.role]

    def append(self, entry):
        require(entry.vault == self.vault, "wrongVault")
        require(entry.number == len(self.hashes) + 1, "wrongNumber")
        require(entry.previous == self.hashes[-1], "wrongPrevious")
        require(entry.number < LATE or self.winds_down(entry), "windingDown")
        if entry.kind != "join":
            author = self.members.get(entry.author)
            require(author and author.role, "unknownAuthor")
            signed = label("saltern-1 vault entry", entry.text)
            require(has_signed(author.keys[-1][1], entry.signature, signed), "wrongSignature")
            require(author.role == MANAGER or entry.kind not in MANAGING, "notPermitted")
        getattr(self, "check_" + entry.kind)(entry)
        self.hashes.append(entry.hash)
        if entry.kind in MANAGING:
            self.times[entry.author] = max(self.times.get(entry.author, 0), entry.time)

    def winds_down(self, entry):
        if entry.kind == "rotate":
            return self.rotation_due
        if entry.kind == "rekey":
            member = self.members.get(entry.author)
            return not member or all(since < LATE for since, _, _ in member.keys[1:])
        if entry.kind == "seal":
            return entry.sealed in self.unsealed() and (self.cuts[entry.sealed] >= LATE or self.late_seals < 256)
        return entry.kind in ("leave", "remove", "accept")

    def unsealed(self):
        """The writers that no manager has sealed since they were cut off."""
        open_cuts = {
            name: cut for name, cut in self.cuts.items()
            if all(seal.number < cut for seal in self.seals.get(name, {}).values())}
        return sorted(open_cuts, key=lambda name: (open_cuts[name], name))

    @property
    def clock(self):
        """The time that two managers bear out."""
        return sorted([0, *self.times.values()])[-2]

    def use_keys(self, *keys):
        require(not self.used_keys & set(keys), "repeatedKey")

    def is_open(self, invitation, time):
        terms = invitation["terms"]
        return not invitation["closed"] and invitation["joins"] < terms.uses and time <= terms.expiry

    def check_invite(self, entry):
        require(entry.invitation not in self.invitations, "repeatedID")
        self.use_keys(entry.admission_key)
        require(0 < entry.expiry - entry.time <= 30 * 86400, "wrongExpiry")
        require(sum(self.is_open(each, self.clock) for each in self.invitations.values()) < 64, "tooManyInvitations")
        self.invitations[entry.invitation] = {"terms": entry, "joins": 0, "closed": False}
        self.used_keys.add(entry.admission_key)

    def check_join(self, entry):
        require(entry.author not in self.members, "repeatedID")
        self.use_keys(entry.signing, entry.agreement)
        invitation = self.invitations.get(entry.invitation)
        require(invitation and self.is_open(invitation, 0), "closedInvitation")
        require(self.is_open(invitation, max(entry.time, self.clock)), "expiredInvitation")
        require(len(self.present()) < 128, "tooManyMembers")
        require(has_signed(entry.signing, entry.signature, label("saltern-1 vault entry", entry.text)), "wrongSignature")
        admission = label("saltern-1 vault admission", entry.inner)
        require(has_signed(invitation["terms"].admission_key, entry.admission, admission), "wrongAdmission")
        invitation["joins"] += 1
        self.members[entry.author] = Member(entry, invitation["terms"].role, entry.invitation)
        self.used_keys |= {entry.signing, entry.agreement}

    def change_role(self, name, role, entry):
        member = self.members[name]
        if (member.role or 0) >= WRITER > (role or 0):
            self.cuts[name] = entry.number
        if (member.role or 0) > (role or 0) and self.offer and self.offer[1] == name:
            self.offer = None
        member.roles.append((entry.number, role))

    def close(self, closes):
        for name, invitation in self.invitations.items():
            invitation["closed"] |= closes(name, invitation["terms"].author)

    def begin_generation(self, entry):
        require(entry.generation[0] == len(self.generations) + 1, "wrongGeneration")
        require(all(entry.generation[1] != key_id for _, key_id, _ in self.generations), "wrongGeneration")

    def add_generation(self, entry):
        self.generations.append(entry.generation)
        self.starts.append(entry.number)
        self.rotation_due = False
        self.close(lambda name, author: True)

    def check_role(self, entry):
        require(entry.member in self.present(), "unknownMember")
        role = self.members[entry.member].role
        require(role != entry.role, "unchangedRole")
        require(entry.member != self.owner, "ownerProtected")
        if entry.role < role:
            self.close(lambda name, author: True)
        self.change_role(entry.member, entry.role, entry)

    def check_remove(self, entry):
        self.begin_generation(entry)
        for name in entry.members:
            require(name in self.present(), "unknownMember")
            require(name != self.owner, "ownerProtected")
            require(name != entry.author, "ownRemoval")
        for name in entry.members:
            self.change_role(name, None, entry)
        self.add_generation(entry)

    def check_leave(self, entry):
        require(entry.author != self.owner, "ownerProtected")
        joined_by = self.members[entry.author].invitation
        self.close(lambda name, author: author == entry.author or name == joined_by)
        self.change_role(entry.author, None, entry)
        self.rotation_due = True

    def check_rotate(self, entry):
        self.begin_generation(entry)
        self.add_generation(entry)

    def check_revoke(self, entry):
        invitation = self.invitations.get(entry.invitation)
        require(invitation and self.is_open(invitation, 0), "closedInvitation")
        invitation["closed"] = True

    def check_seal(self, entry):
        require(entry.sealed in self.cuts, "nothingToSeal")
        self.seals.setdefault(entry.sealed, {})[entry.author] = entry
        self.late_seals += entry.number >= LATE > self.cuts[entry.sealed]

    def check_offer(self, entry):
        require(entry.author == self.owner, "notPermitted")
        if entry.member == bytes(16):
            require(self.offer, "noOffer")
            self.offer = None
        else:
            receiver = self.members.get(entry.member)
            require(receiver and receiver.role == MANAGER and entry.member != self.owner, "unknownMember")
            self.offer = (entry.number, entry.member)

    def check_accept(self, entry):
        require(self.offer == (entry.offer, entry.author), "noOffer")
        self.owner, self.offer = entry.author, None

    def check_rekey(self, entry):
        member = self.members[entry.author]
        require(len(member.keys) <= 64, "tooManyKeys")
        self.use_keys(entry.signing, entry.agreement)
        require(has_signed(entry.signing, entry.possession, label("saltern-1 vault rekey", entry.inner)), "wrongPossession")
        self.close(lambda name, author: author == entry.author or name == member.invitation)
        if member.role >= WRITER:
            self.cuts[entry.author] = entry.number
        member.keys.append((entry.number, entry.signing, entry.agreement))
        self.used_keys |= {entry.signing, entry.agreement}
        self.rotation_due = True

    def generation_at(self, head):
        return sum(start <= head for start in self.starts)

    # MARK: Items

    def check_edit(self, body, title, item, collection, edit, previous, generation, held=False, lists=()):
        """The hash of an edit that counts."""
        author, head, signature, content = body[:16], body[16:56], body[56:120], body[120:]
        place = int.from_bytes(head[:8], "big")
        require(place <= len(self.hashes), "unknownHead")
        require(self.hashes[place - 1] == head[8:], "fork")
        member = self.members.get(author)
        require(member and member.role_at(place), "unknownAuthor")
        require(member.role_at(place) >= WRITER, "notPermitted")
        check_form(signature)
        about = statement(self.vault, item, collection, edit, previous, author, head, title, content)
        require(has_signed(member.key_at(place), signature, label("saltern-1 vault edit", about)), "wrongSignature")
        require(generation >= self.generation_at(place), "oldGeneration")
        edit_hash = sha(label("saltern-1 vault edit hash", about))
        cut = member.cut(place)
        if cut is not None:
            self.check_cut(author, cut, item + sha(label("saltern-1 vault edit mark", about, signature)), held, lists)
        return edit_hash

    def check_cut(self, author, cut, edit, held, lists):
        seals = [seal for seal in self.seals.get(author, {}).values() if seal.number > cut]
        require(seals or held, "awaitsSeal")
        found = [each for seal in seals for each in lists if sha(each) == seal.digest and len(each) == 48 * seal.count]
        if seals and not any(edit == each[first : first + 48] for each in found for first in range(0, len(each), 48)):
            raise Refused("notListed" if len(found) == len(seals) else "listMissing")


def statement(vault, item, collection, edit, previous, author, head, title, content):
    name = collection.encode()
    about = b"\x00" + ZEROS if title is None else b"\x01" + sha(title.encode())
    return vault + item + number(len(name), 2) + name + number(edit) + previous + author + head + about + sha(content)


# MARK: Keys


def key_id(key):
    return hkdf(key, b"saltern-1 key id", 4)


def commitment(key, generation):
    return hmac.digest(key, label("saltern-1 vault generation", number(generation)), "sha256")


def name_key(key):
    return derive(key, "saltern-1 vault name key")


def padded(name):
    text = name.encode()
    return bytes([len(text)]) + text + bytes(64 - len(text))


def open_name(sealed, member, key):
    content = open_gcm(name_key(key), sealed, member)
    name = content[1 : 1 + content[0]].decode()
    require(padded(name) == content, "malformed")
    return name


def box_key(secret, vault, generation, member, ephemeral, agreement):
    return derive(secret, "saltern-1 vault box", vault, number(generation), member, ephemeral, agreement)


def seal_box(key, vault, generation, member, agreement, ephemeral):
    shared = ephemeral.exchange(ec.ECDH(), public_key(agreement))
    under = box_key(shared, vault, generation, member, point_of(ephemeral), agreement)
    return point_of(ephemeral) + AESGCM(under).encrypt(bytes(12), key, b"")


def open_box(box, vault, generation, member, private):
    shared = private.exchange(ec.ECDH(), public_key(box[:65]))
    under = box_key(shared, vault, generation, member, box[:65], point_of(private))
    return AESGCM(under).decrypt(bytes(12), box[65:], b"")


# MARK: Invitations


class Invitation:
    def __init__(self, name, secret, code=None):
        self.salt = hkdf(secret, label("saltern-1 invitation salt", name), 16)
        material = secret
        if code is not None:
            material += hashlib.pbkdf2_hmac("sha256", code.encode(), self.salt, 600_000)
        self.token = derive(material, "saltern-1 invitation token", name)
        self.preview_key = derive(material, "saltern-1 invitation preview", name)
        self.key_key = derive(material, "saltern-1 invitation key", name)
        candidates = (derive(material, "saltern-1 invitation admission", name, bytes([counter])) for counter in range(256))
        self.admission = next(each for each in candidates if 0 < int.from_bytes(each, "big") < ORDER)
