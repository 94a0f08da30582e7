"""Two people share a vault, by docs/shared-vaults-protocol.md alone: one founds it, one joins by a link and is removed.

    vaults.py ADA BOB STREAM     two session tokens, and the file with Bob's live stream; prints the vault's id and the
                                 path of the link

Called by vaults.sh.
"""

import base64
import json
import os
import pathlib
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid

import saltern_1
import vault_log
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from vault_log import Entry, Invitation, Log, label, number

URL = os.environ["SALTERN_TEST_URL"]
CONTEXT = ssl.create_default_context(cafile=os.environ["SALTERN_TEST_CERTIFICATE"])
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=CONTEXT))
BODY_PART = 17
COLLECTION = "notes"


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def base64_of(raw):
    return base64.b64encode(raw).decode()


def ask(method, path, token, body=None, fields=None):
    """Status and JSON of a reply."""
    request = urllib.request.Request(URL + path, method=method, headers={**(fields or {}), "Authorization": f"Bearer {token}"})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with OPENER.open(request, timeout=60) as reply:
            content = reply.read()
            return reply.status, json.loads(content) if content else {}
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def sign(private, text):
    r, s = decode_dss_signature(private.sign(text, ec.ECDSA(hashes.SHA256())))
    return number(r, 32) + number(min(s, vault_log.ORDER - s), 32)


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


def generation(key, place):
    return number(place) + vault_log.key_id(key) + vault_log.commitment(key, place)


def sealed_item(person, log, key, item, text):
    about = vault_log.statement(log.vault, item, COLLECTION, 1, bytes(32), person.member, log.head, None, text)
    body = person.member + log.head + sign(person.signing, label("saltern-1 vault edit", about)) + text
    return saltern_1.seal(body, 1, bytes(32), BODY_PART, log.vault, item, COLLECTION, key)


def put(person, path, log, key, item, text, **fields):
    body = {"format": "saltern-1", "collection": COLLECTION, "body": base64_of(sealed_item(person, log, key, item, text))}
    head = {"Vault-Head": str(len(log.hashes)), "If-None-Match": "*", **fields}
    return ask("PUT", f"{path}/items/{uuid.UUID(bytes=item)}", person.token, body, head)


def read(person, path, log, key, item):
    """The text of an item, whose author and signature are right."""
    status, reply = ask("GET", f"{path}/items/{uuid.UUID(bytes=item)}", person.token)
    check(status == 200, f"the item: {reply}")
    sealed = base64.b64decode(reply["body"])
    body, edit, previous = saltern_1.unseal(sealed, BODY_PART, log.vault, item, COLLECTION, [key])
    log.check_edit(body, None, item, COLLECTION, edit, previous, len(log.generations))
    return body[120:]


def verified(entries):
    entries = [Entry(base64.b64decode(each)) for each in entries]
    log = Log(entries[0])
    for entry in entries[1:]:
        log.append(entry)
    return log


def main():
    ada, bob = Person("Ada", sys.argv[1]), Person("Bob", sys.argv[2])
    key = secrets.token_bytes(32)

    founding = ada.entry(None, "found", secrets.token_bytes(32) + ada.keys + generation(key, 1) + ada.sealed_name(key))
    log = Log(founding)
    status, reply = ask("POST", "/v1/vaults", ada.token, {"entry": base64_of(founding.raw)})
    check(status == 201 and uuid.UUID(reply["id"]).bytes == log.vault, f"the vault: {reply}")
    check(ask("POST", "/v1/vaults", ada.token, {"entry": base64_of(founding.raw)})[0] == 200, "the same once more")
    path = f"/v1/vaults/{reply['id']}"
    check(ask("GET", path, bob.token)[0] == 404, "no vault for others")
    note = secrets.token_bytes(16)
    status, reply = put(ada, path, log, key, note, b"The garden gate sticks.")
    check(status == 201, f"an item of Ada: {reply}")

    # The invitation.
    invitation, secret = secrets.token_bytes(16), secrets.token_bytes(16)
    made = Invitation(invitation, secret, "walk ocean paper stone river cloud")
    admission = vault_log.private_key(made.admission)
    expiry = int(time.time()) + 86_400
    terms = invitation + vault_log.point_of(admission) + bytes([vault_log.WRITER]) + number(expiry) + number(1, 2) + b"\x02"
    entry = ada.entry(log, "invite", terms)
    preview = vault_log.padded("Allotment") + vault_log.padded("Ada") + vault_log.name_key(key)
    body = {
        "entry": base64_of(entry.raw), "tokenHash": base64_of(vault_log.sha(made.token)),
        "preview": base64_of(vault_log.gcm(made.preview_key, preview, secrets.token_bytes(12))),
        "keyBox": base64_of(vault_log.gcm(made.key_key, key, secrets.token_bytes(12)))}
    status, reply = ask("POST", f"{path}/invitations", ada.token, body)
    check(status == 201, f"the invitation: {reply}")
    log.append(entry)

    # Bob has the link and the code, and opens the invitation without a session.
    at = f"/v1/invitations/{uuid.UUID(bytes=invitation)}"
    token = "sli_" + base64.urlsafe_b64encode(made.token).decode().rstrip("=")
    status, opened = ask("GET", at, token)
    check(status == 200 and "keyBox" not in opened, f"the invitation without the key: {opened}")
    theirs = verified(opened["entries"])
    check(theirs.head == log.head, "the log")
    check(theirs.invitations[invitation]["terms"].admission_key == vault_log.point_of(admission), "the admission key of the link")
    shown = vault_log.open_gcm(made.preview_key, base64.b64decode(opened["preview"]))
    check(shown[1 : 1 + shown[0]] == b"Allotment", "the name of the vault")
    check(vault_log.open_name(theirs.members[ada.member].name, ada.member, key) == "Ada", "the name of the inviter")
    check(ask("GET", at, "sli_" + "A" * 43)[0] == 404, "nothing for another token")

    entry = bob.entry(theirs, "join", bob.keys + invitation + bob.sealed_name(key), admission)
    joining = {"entry": base64_of(entry.raw), "token": base64_of(made.token)}
    status, joined = ask("POST", f"{at}/acceptance", bob.token, joining)
    check(status == 201, f"the membership: {joined}")
    check(ask("POST", f"{at}/acceptance", bob.token, joining)[0] == 200, "the same once more")
    check(vault_log.open_gcm(made.key_key, base64.b64decode(joined["keyBox"])) == key, "the key")
    check(ask("GET", at, token)[0] == 404, "no invitation that is used up")
    log.append(entry)

    # Both read and write.
    check(read(bob, path, log, key, note) == b"The garden gate sticks.", "Ada's item for Bob")
    answer = secrets.token_bytes(16)
    status, reply = put(bob, path, log, key, answer, b"I have oil for it.")
    check(status == 201, f"an item of Bob: {reply}")
    check(read(ada, path, log, key, answer) == b"I have oil for it.", "Bob's item for Ada")
    status, reply = put(bob, path, log, secrets.token_bytes(32), secrets.token_bytes(16), b"With another key.")
    check(status == 409 and reply["code"] == "stale_generation", f"no item under another key: {reply}")
    status, reply = put(bob, path, log, key, secrets.token_bytes(16), b"From the future.", **{"Vault-Head": "9"})
    check(status == 409 and reply["code"] == "membership_moved", f"no item with an unknown head: {reply}")

    deadline = time.monotonic() + 60
    while '"head":{"number":3,' not in pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"):
        check(time.monotonic() < deadline, "the vault in Bob's live stream")
        time.sleep(0.1)

    # The removal, with a key that Bob does not get.
    next_key = secrets.token_bytes(32)
    entry = ada.entry(log, "remove", generation(next_key, 2) + number(1, 2) + bob.member)
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    box = vault_log.seal_box(next_key, log.vault, 2, ada.member, vault_log.point_of(ada.agreement), ephemeral)
    previous = vault_log.gcm(vault_log.derive(next_key, "saltern-1 vault previous key", log.vault, number(2)), key, secrets.token_bytes(12))
    body = {
        "entry": base64_of(entry.raw), "previousKey": base64_of(previous),
        "boxes": [{"member": str(uuid.UUID(bytes=ada.member)), "box": base64_of(box)}]}
    status, reply = ask("POST", f"{path}/log", ada.token, body)
    check(status == 200, f"the removal: {reply}")
    log.append(entry)
    check(ask("GET", path, bob.token)[0] == 404, "nothing for Bob")
    check(put(bob, path, log, key, secrets.token_bytes(16), b"Still here.")[0] == 404, "no item of Bob")

    # A new device of Ada: the log, the box, the keys, and her item under the new key.
    status, reply = ask("GET", f"{path}/log", ada.token)
    log = verified(reply["entries"])
    check([log.members[each].role for each in log.present()] == [vault_log.MANAGER], "Ada alone")
    mine = vault_log.open_box(base64.b64decode(reply["boxes"][0]["box"]), log.vault, 2, ada.member, ada.agreement)
    check(mine == next_key, "the key from the box")
    under = vault_log.derive(mine, "saltern-1 vault previous key", log.vault, number(2))
    check(vault_log.open_gcm(under, base64.b64decode(reply["previousKeys"][0]["key"])) == key, "the key before")
    status, reply = put(ada, path, log, next_key, secrets.token_bytes(16), b"Bob has moved away.")
    check(status == 201, f"an item under the new key: {reply}")
    print(path.rsplit("/", 1)[1], f"/j/{vault_log.base62(invitation)}")


main()
