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
import sys
import time
import uuid

import saltern_1
import vault_log
from vault_log import Entry, Invitation, Log, number
from vault_person import BODY_PART, Person, base64_of, box, generation, previous_key

from traffic.patience import exchange_alone
from traffic.wire import Target, request

TARGET = Target.of(os.environ["SALTERN_TEST_URL"], os.environ["SALTERN_TEST_CERTIFICATE"])
COLLECTION = "notes"


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def ask(method, path, token, body=None, fields=None, creates=False):
    """Status and JSON of a reply. A repeated request that creates something may have done so the first time."""
    answer = exchange_alone(TARGET, request(method, path, body, token, fields), creates=creates)
    return answer.status, json.loads(answer.body or b"{}")


def put(person, path, log, key, item, text, **fields):
    body = {"format": "saltern-1", "collection": COLLECTION, "body": base64_of(person.sealed_item(log, key, item, COLLECTION, text))}
    head = {"Vault-Head": str(len(log.hashes)), "If-None-Match": "*", **fields}
    return ask("PUT", f"{path}/items/{uuid.UUID(bytes=item)}", person.token, body, head, creates=True)


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

    founding = ada.found(key)
    log = Log(founding)
    status, reply = ask("POST", "/v1/vaults", ada.token, {"entry": base64_of(founding.raw)}, creates=True)
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
    entry, body = ada.invite(log, key, "Allotment", invitation, made, vault_log.WRITER, has_code=True)
    status, reply = ask("POST", f"{path}/invitations", ada.token, body, creates=True)
    check(status == 201, f"the invitation: {reply}")
    log.append(entry)

    # Bob has the link and the code, and opens the invitation without a session.
    at = f"/v1/invitations/{uuid.UUID(bytes=invitation)}"
    token = "slv_" + base64.urlsafe_b64encode(made.token).decode().rstrip("=")
    status, opened = ask("GET", at, token)
    check(status == 200 and "keyBox" not in opened, f"the invitation without the key: {opened}")
    theirs = verified(opened["entries"])
    check(theirs.head == log.head, "the log")
    derived = vault_log.point_of(vault_log.private_key(made.admission))
    check(theirs.invitations[invitation]["terms"].admission_key == derived, "the admission key of the link")
    shown = vault_log.open_gcm(made.preview_key, base64.b64decode(opened["preview"]))
    check(shown[1 : 1 + shown[0]] == b"Allotment", "the name of the vault")
    check(vault_log.open_name(theirs.members[ada.member].name, ada.member, key) == "Ada", "the name of the inviter")
    check(ask("GET", at, "slv_" + "A" * 43)[0] == 404, "nothing for another token")

    entry = bob.join(theirs, key, invitation, made)
    joining = {"entry": base64_of(entry.raw), "token": base64_of(made.token)}
    status, joined = ask("POST", f"{at}/acceptance", bob.token, joining, creates=True)
    check(status == 201, f"the membership: {joined}")
    status, again = ask("POST", f"{at}/acceptance", bob.token, joining)
    check(status == 200 and again.get("keyBox") == joined["keyBox"], f"the same once more, after a lost reply: {again}")
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

    deadline = time.monotonic() + 180
    while '"head":{"number":3,' not in pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"):
        check(time.monotonic() < deadline, "the vault in Bob's live stream")
        time.sleep(0.1)

    # The removal, with a key that Bob does not get.
    next_key = secrets.token_bytes(32)
    entry = ada.entry(log, "remove", generation(next_key, 2) + number(1, 2) + bob.member)
    sealed = box(log.vault, 2, next_key, ada.member, vault_log.point_of(ada.agreement))
    body = {
        "entry": base64_of(entry.raw), "previousKey": base64_of(previous_key(log.vault, 2, next_key, key)),
        "boxes": [{"member": str(uuid.UUID(bytes=ada.member)), "box": base64_of(sealed)}]}
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
