"""The sections of docs/vectors.json about shared vaults, by docs/shared-vaults-protocol.md alone."""

import json
import pathlib
import sys

import vault_log
from vault_log import Entry, Invitation, Log, Refused

ROOT = pathlib.Path(__file__).parents[2]
WORDS = (ROOT / "Sources/VaultLog/Links/code-words.txt").read_text(encoding="ascii").split()
ROLES = {vault_log.READER: "reader", vault_log.WRITER: "writer", vault_log.MANAGER: "manager", None: "none"}


def check(holds, expected):
    if not holds:
        sys.exit(f"expected {expected}")


def raw(section, name):
    return bytes.fromhex(section[name])


def reason(body, *arguments, **more):
    """The reason for which a call is refused, or `accepted`."""
    try:
        body(*arguments, **more)
    except Refused as refused:
        return refused.args[0]
    return "accepted"


def check_invitation(step):
    made = Invitation(raw(step, "id"), raw(step, "secret"), step.get("code"))
    check(made.token == raw(step, "token"), "the token of the invitation")
    check(vault_log.sha(made.token) == raw(step, "tokenHash"), "the hash of the token")
    check(made.preview_key == raw(step, "previewKey") and made.key_key == raw(step, "keyKey"), "both keys of the invitation")
    check(made.admission == raw(step, "admissionPrivateKey"), "the admission key")
    check(vault_log.point_of(vault_log.private_key(made.admission)) == raw(step, "admissionPublicKey"), "its point")
    key = raw(step, "generationKey")
    names = vault_log.padded(step["vaultName"]) + vault_log.padded(step["inviterName"]) + vault_log.name_key(key)
    check(vault_log.gcm(made.preview_key, names, bytes(range(12))) == raw(step, "preview"), "the preview")
    check(vault_log.gcm(made.key_key, key, bytes(range(12, 24))) == raw(step, "sealedKey"), "the sealed key")


def check_generation(step):
    key, generation, vault, member = raw(step, "key"), int(step["number"]), raw(step, "vault"), raw(step, "member")
    check(vault_log.key_id(key) == raw(step, "keyId"), "the id of the key")
    check(vault_log.commitment(key, generation) == raw(step, "commitment"), "the commitment")
    check(vault_log.name_key(key) == raw(step, "nameKey"), "the key of names")
    check(vault_log.derive(key, "saltern-1 vault chunk id") == raw(step, "chunkIdKey"), "the key of ids of chunks")
    sealed = raw(step, "sealedName")
    check(vault_log.open_name(sealed, member, key) == step["name"], "the sealed name")
    content = vault_log.padded(step["name"])
    check(vault_log.gcm(vault_log.name_key(key), content, bytes(range(24, 36)), member) == sealed, "the name, sealed")
    under = vault_log.derive(key, "saltern-1 vault previous key", vault, vault_log.number(generation))
    previous = vault_log.gcm(under, raw(step, "previousKey"), bytes(range(36, 48)))
    check(previous == raw(step, "sealedPreviousKey"), "the previous key")
    private = vault_log.private_key(raw(step, "agreementPrivateKey"))
    ephemeral = vault_log.private_key(raw(step, "ephemeralPrivateKey"))
    box = vault_log.seal_box(key, vault, generation, member, vault_log.point_of(private), ephemeral)
    check(box == raw(step, "box") and vault_log.open_box(box, vault, generation, member, private) == key, "the box")


def log_of(entries):
    log = Log(entries[0])
    for entry in entries[1:]:
        log.append(entry)
    return log


def check_state(log, entries, state):
    vault = log.vault.hex()
    check("-".join([vault[:8], vault[8:12], vault[12:16], vault[16:20], vault[20:]]) == state["vault"], "the vault's id")
    check(log.head == raw(state, "head") and log.owner == raw(state, "owner"), "head and owner of the log")
    check(len(log.generations) == int(state["generation"]), "the number of the generation")
    check(str(log.rotation_due).lower() == state["rotationDue"], "no rotation to be due")
    check(" ".join(name.hex() for name in log.unsealed()) == state["unsealed"], "the writers without seals")
    digest = vault_log.sha(vault_log.label("saltern-1 vault head", log.vault, log.head))
    check(vault_log.words_of(digest, 12, WORDS) == state["headWords"], "the words of the head")
    check(vault_log.words_of(entries[2].hash, 4, WORDS) == state["joinWords"], "the words of the join")
    first_key = bytes([0xA1] * 32)
    for person, name in (("ada", 0x41), ("ben", 0x42), ("cid", 0x43), ("dan", 0x44)):
        member = log.members[bytes([name] * 16)]
        check(ROLES[member.role] == state[f"role of {person}"], f"the role of {person}")
        opened = vault_log.open_name(member.name, bytes([name] * 16), first_key)
        check(opened == state[f"name of {person}"], f"the name of {person}")
    for value, (generation, key_id, commitment) in zip((0xA1, 0xA2, 0xA3), log.generations, strict=True):
        key = bytes([value] * 32)
        check(vault_log.key_id(key) == key_id, "the key of a generation")
        check(vault_log.commitment(key, generation) == commitment, "the commitment of a generation")


def check_link(link, invitation, entry):
    parts = [vault_log.base62(part) for part in (raw(invitation, "id"), raw(invitation, "secret"), entry.hash[:16])]
    check(link == "https://api.example.org/j/{}#1{}{}".format(*parts), "the link")


def check_rejected(entries, rejected):
    for name, text in rejected.items():
        expected = name.partition(":")[0]
        entry = Entry(bytes.fromhex(text))
        before = len(entries) if expected == "wrongNumber" else min(entry.number - 1, len(entries))
        found = reason(log_of(entries[:before]).append, entry)
        check(found == expected, f"{name}, and it is {found}")


def check_changed(entries):
    """A changed bit of an entry is malformed or invalid."""
    for index, entry in enumerate(entries):
        log = log_of(entries[:index]) if index else None
        for place in range(0, len(entry.raw), 5):
            changed = bytearray(entry.raw)
            changed[place] ^= 1 << place % 8
            found = reason(lambda raw, log=log: log.append(Entry(raw)) if log else Log(Entry(raw)), bytes(changed))
            check(found != "accepted", f"entry {index + 1} to be refused with byte {place} changed")


def check_edits(log, before_seal, step, edits):
    item, collection, lists = raw(step, "item"), step["collection"], [raw(step, "list")]
    about = vault_log.statement(
        log.vault, item, collection, int(step["number"]), vault_log.ZEROS, raw(step, "author"), raw(step, "head"),
        step["title"], step["body"].encode())
    check(about == raw(step, "statement"), "the statement about the edit")
    check(vault_log.sha(vault_log.label("saltern-1 vault edit hash", about)) == raw(step, "hash"), "the hash of the edit")
    for name, text in edits.items():
        title = step["title"] if name in ("accepted", "listed", "wrongSignature") else None
        awaits = name == "awaitsSeal"
        chosen = before_seal if awaits else log
        found = reason(
            chosen.check_edit, bytes.fromhex(text), title, item, collection, 1, vault_log.ZEROS,
            len(chosen.generations), lists=() if awaits else lists)
        check(found == ("accepted" if name == "listed" else name), f"the edit {name}, and it is {found}")


def check_statements(log, step):
    member, head = raw(step, "member"), raw(step, "head")
    key = log.members[member].keys[-1][1]
    seen = vault_log.label("saltern-1 vault seen", log.vault, member, head)
    check(vault_log.has_signed(key, raw(step, "seen"), seen), "the signature of the seen head")
    claim = vault_log.label("saltern-1 vault claim", log.vault, member, raw(step, "account"), head)
    check(vault_log.has_signed(key, raw(step, "claim"), claim), "the signature of the claim")


def main():
    vectors = json.loads((ROOT / "docs/vectors.json").read_text(encoding="utf-8"))
    check_invitation(vectors["vaultInvitation"])
    check_invitation(vectors["vaultInvitationWithCode"])
    check_generation(vectors["vaultGeneration"])
    entries = [Entry(bytes.fromhex(text)) for _, text in sorted(vectors["vaultLog"].items())]
    check({entry.kind for entry in entries} == set(vault_log.KINDS[1:]), "an entry of each kind")
    log = log_of(entries)
    check_state(log, entries, vectors["vaultLogState"])
    check_link(vectors["vaultLogState"]["link"], vectors["vaultInvitation"], entries[1])
    check_rejected(entries, vectors["vaultRejected"])
    check_changed(entries)
    check_edits(log, log_of(entries[:7]), vectors["vaultEdit"], vectors["vaultEdits"])
    check_statements(log, vectors["vaultStatements"])


main()
