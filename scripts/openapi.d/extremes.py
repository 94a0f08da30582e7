"""Sends every field of every JSON request of openapi.yaml at the extremes that its schema allows.

The fields, their types and their bounds come from the document alone. A value that the schema allows has to be taken: a reply
of 400 or 422 is a fault, unless the description of the field names its code (`code`), because a schema cannot say what the code
is about. Other refusals (404, 409, 412, …) are about what is stored and not about the field.

    extremes.py DOCUMENT URL CERTIFICATE      the server has SALTERN_RATE_LIMITS=off; PYTHONPATH has scripts/lib
"""

import base64
import json
import os
import re
import sys
import uuid
from datetime import datetime, timedelta, timezone
from functools import partial

import jsonschema
import requests
import yaml
from traffic.founder import Founder

SESSION = requests.Session()
# The bundle of REQUESTS_CA_BUNDLE would count more than the certificate that is given.
SESSION.trust_env = False
CHARACTERS = ["a", "A", "0", "-", "_", " ", "/", "\u00e9", "\u0001", "\u007f", "\u0085", "\u200b", "\u2028", "\U0001f600"]
# What a member is refused without, where the schema cannot say it.
COMPANIONS = {
    "keyringRevision": ["keyring"],
    "recoveryKeyring": [],
    "accountKeyring": ["keyring", "accountKeyringRevision"],
    "accountKeyringRevision": ["keyring", "accountKeyring"],
    "box": ["sealedPrivateKey"],
    "currentPasswordKey": ["sealedPrivateKey"],
}


class Number(str):
    """A number as it is written in the request."""


def encoded(content):
    return base64.b64encode(content).decode()


def sealed(count=100):
    return encoded(os.urandom(count))


def key():
    return encoded(b"\xff\xfe" + os.urandom(30))


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.root = yaml.safe_load(file)

    def resolved(self, schema):
        """The schema without references, and all descriptions on the way to it."""
        descriptions, names = [], []
        schema = dict(schema)
        while True:
            descriptions.append(schema.get("description", ""))
            if "$ref" in schema:
                names.append(schema["$ref"].rsplit("/", 1)[1])
                schema = dict(self.root["components"]["schemas"][names[-1]])
            elif "allOf" in schema and len(schema["allOf"]) == 1:
                schema = dict(schema["allOf"][0])
            else:
                return schema, " ".join(descriptions), names

    def allows(self, schema, value):
        """Whether the whole value fits the schema: some members depend on others."""
        whole = {**schema, "components": self.root["components"]}
        return jsonschema.Draft202012Validator(whole).is_valid(value)

    def operations(self):
        for path, methods in self.root["paths"].items():
            for method, operation in methods.items():
                if isinstance(operation, dict) and "requestBody" in operation:
                    schema = operation["requestBody"]["content"].get("application/json", {}).get("schema")
                    if schema is not None:
                        yield method, path, schema

    def branches(self, schema):
        """The schemas of which a value may fit any, and the words said about all of them."""
        resolved, words, names = self.resolved(schema)
        for member in ("oneOf", "anyOf"):
            if member in resolved:
                for branch in resolved[member]:
                    for inner, more, inner_names in self.branches(branch):
                        yield inner, words + " " + more, names + inner_names
                return
        types = resolved.get("type", "object")
        for kind in types if isinstance(types, list) else [types]:
            yield {**resolved, "type": kind}, words, names

    def usual(self, schema, account):
        """A value that the server takes as it is."""
        for resolved, _, names in self.branches(schema):
            if resolved["type"] == "null":
                continue
            for name in names:
                if name in account:
                    return account[name]() if callable(account[name]) else account[name]
            if resolved["type"] == "object":
                return self.usual_object(resolved, account)
            if resolved["type"] == "array":
                return [self.usual(resolved["items"], account) for _ in range(resolved.get("minItems", 1))]
            if "const" in resolved or "enum" in resolved:
                return resolved.get("const", resolved.get("enum", [None])[0])
            if resolved["type"] == "integer":
                return max(resolved.get("minimum", 0), min(600_000, resolved.get("maximum", 600_000)))
            if resolved["type"] == "boolean":
                return False
            return sealed() if resolved.get("contentEncoding") else next(iter(strings(resolved)), "x")
        return None

    def usual_object(self, resolved, account):
        """The required members, and the key that proves who asks. New keys are not the one that there is."""
        properties, proof = resolved["properties"], "currentPasswordKey"
        found = {}
        for name in dict.fromkeys([*resolved.get("required", []), *({proof} & properties.keys())]):
            is_new = name == "recoveryKey" or name == "passwordKey" and proof in properties
            found[name] = key() if is_new else self.usual(properties[name], account)
        return found

    def extremes(self, schema, account, place=()):
        """Every place in a value, what may stand there, what is said about it, and how the values around it are made."""
        for resolved, words, names in self.branches(schema):
            kind = resolved["type"]
            if kind == "object":
                for name, member in resolved.get("properties", {}).items():
                    for inner, value, said, bases in self.extremes(member, account, (*place, name)):
                        yield inner, value, said, [*bases, (place, partial(self.base, resolved, names))]
            elif kind == "array":
                item = resolved["items"]
                for count in {resolved.get("minItems", 0), resolved.get("maxItems", 1)}:
                    yield place, [self.usual(item, account) for _ in range(count)], words, []
                for inner, value, said, bases in self.extremes(item, account, (*place, 0)):
                    yield inner, value, said, [*bases, (place, lambda account, item=item: [self.usual(item, account)])]
            else:
                for value in scalars(resolved, names, account):
                    yield place, value, words, []

    def base(self, resolved, names, account):
        """The object around a place."""
        known = next((account[name]() for name in names if callable(account.get(name))), None)
        return known or self.usual_object(resolved, account)


def scalars(schema, names, account):
    kind = schema["type"]
    if "const" in schema or "enum" in schema:
        return schema.get("enum", [schema.get("const")])
    if kind == "null":
        return [None]
    if kind == "boolean":
        return [True, False]
    if kind == "integer":
        low = schema.get("minimum", -(2**63) if schema.get("format") == "int64" else -(2**31))
        high = schema.get("maximum", 2**63 - 1 if schema.get("format") == "int64" else 2**31 - 1)
        return [Number(low), Number(high), Number(f"{low}.0"), Number(f"{low * 10}E-1"), Number(f"{high}e0"), Number(f"{high}.0")]
    known = [account[name]() if callable(account[name]) else account[name] for name in names if name in account]
    return [*known, *strings(schema)]


def strings(schema):
    if schema.get("format") == "date-time":
        day = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)
        plain = day.strftime("%Y-%m-%dT%H:%M:%S")
        there = (day + timedelta(hours=5, minutes=45)).strftime("%Y-%m-%dT%H:%M:%S")
        west = (day - timedelta(hours=23, minutes=59)).strftime("%Y-%m-%dT%H:%M:%S")
        forms = [plain + "Z", plain.lower() + "z", plain + ".0Z", plain + "." + "9" * 30 + "Z", plain + "+00:00"]
        return [*forms, plain + "-00:00", there + "+05:45", west + "-23:59"]
    if schema.get("format") == "uuid":
        return [str(uuid.uuid4()), str(uuid.uuid4()).upper(), "0" * 8 + str(uuid.uuid4())[8:], str(uuid.UUID(int=2**128 - 1))]
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if schema.get("contentEncoding") == "base64":
        counts = [max(low // 4, 1) * 3 - pad for pad in (2, 1, 0)] + ([high // 4 * 3 - pad for pad in (2, 1, 0)] if high else [])
        counts += range(8, 33)
        found = [encoded(b"\xff" + os.urandom(count - 1)) for count in counts]
        if low != high:
            text = sealed(600)
            found += ["\r\n".join(re.findall(".{1,64}", text)), "\n".join(re.findall(".{1,76}", text))]
    else:
        found = [character * count for character in CHARACTERS for count in {low, low + 1, high or 32, 32}]
    pattern = schema.get("pattern")
    fits = re.compile(pattern).search if pattern else lambda text: True
    return list(dict.fromkeys(
        text for text in found if fits(text) and low <= len(text) and (high is None or len(text) <= high)))


def with_value(body, place, value):
    if not place:
        return value
    first, *rest = place
    copy = list(body) if isinstance(body, list) else dict(body or {})
    if isinstance(copy, list):
        copy[first] = with_value(copy[first], rest, value)
    else:
        copy[first] = with_value(copy.get(first), rest, value)
    return copy


def text_of(body):
    """JSON, with numbers as they are written."""
    numbers = []

    def marked(value):
        if isinstance(value, Number):
            numbers.append(str(value))
            return f"\x00{len(numbers) - 1}\x00"
        if isinstance(value, dict):
            return {name: marked(member) for name, member in value.items()}
        return [marked(member) for member in value] if isinstance(value, list) else value

    text = json.dumps(marked(body))
    return re.sub(r'"\\u0000(\d+)\\u0000"', lambda match: numbers[int(match[1])], text)


def register(url):
    password_key, userid = key(), f"{uuid.uuid4()}@example.org"
    reply = SESSION.post(
        f"{url}/v1/accounts",
        json={"userid": userid, "passwordKey": password_key, "kdf": {"iterations": 600_000}},
        timeout=120,
    )
    reply.raise_for_status()
    return reply.json()["session"]["token"], {
        "PasswordKey": password_key,
        "Userid": lambda: f"{uuid.uuid4()}@example.org",
        "Format": "opaque",
        "ShareFormat": "aes-256-gcm",
        "Sealed": sealed,
        "SealedKeyring": sealed,
        "NewKeyring": sealed,
        "RecoveryKeyring": sealed,
        "UUID": lambda: str(uuid.uuid4()),
        "Iterations": 600_000,
        "NewKDF": {"iterations": 600_000},
        "BatchOperation": lambda: {
            "op": "put", "id": str(uuid.uuid4()), "ifRevision": 0, "format": "opaque", "body": sealed(),
        },
    }


def invite(founder):
    """An entry with an invitation by link."""
    return encoded(founder.invite(os.urandom(16)))


def join(founder):
    """An entry in form: it names no invitation."""
    content = founder.founding[114:244] + os.urandom(16 + 93)
    return encoded(founder.entry(3, content + founder.signing.sign(b"")))


def rotation(founder):
    """A new generation, with its keys in form."""
    entry = encoded(founder.entry(7, (2).to_bytes(8) + os.urandom(4 + 32)))
    return {"entry": entry, "boxes": [member_box(founder)], "previousKey": sealed(60)}


def member_box(founder):
    return {"member": str(uuid.UUID(bytes=founder.member)), "box": sealed(113)}


def head(founder):
    return {"number": founder.count, "hash": encoded(founder.previous)}


def found_vault(url, token):
    """A vault of the account, and the values that its routes take as they are."""
    founder = Founder()
    reply = SESSION.post(
        f"{url}/v1/vaults", json={"entry": encoded(founder.founding)}, headers={"Authorization": f"Bearer {token}"}, timeout=120)
    reply.raise_for_status()
    content = {"format": "saltern-1", "body": encoded(founder.sealed(64))}
    return founder, {
        "Format": "saltern-1",
        "Sealed": lambda: encoded(founder.sealed(64)),
        "VaultEntry": lambda: encoded(Founder().founding),
        "VaultAppend": lambda: rotation(founder),
        "VaultRecovered": lambda: {"head": head(founder)},
        "VaultPosition": lambda: head(founder),
        "EntryHash": lambda: encoded(founder.previous),
        "VaultSignature": lambda: encoded(founder.seen()),
        "SeenHead": lambda: {**head(founder), "signature": encoded(founder.seen())},
        "VaultBoxes": lambda: {"generation": 1, "boxes": [member_box(founder)]},
        "MemberBox": lambda: member_box(founder),
        "KeyBox": lambda: sealed(113),
        "EarlierKey": lambda: sealed(60),
        "InvitationRequest": lambda: {
            "entry": invite(founder), "tokenHash": key(), "preview": sealed(), "keyBox": sealed(),
        },
        "InvitationAcceptance": lambda: {"entry": join(founder), "token": key()},
        "BatchOperation": lambda: {"op": "put", "id": str(uuid.uuid4()), "ifRevision": 0, **content},
    }


def path_of(document, path, founder):
    """The path, with the vault's id, new ids and the lowest numbers."""
    parameters = document.root["paths"][path].get("parameters", [])
    numbers = {parameter["name"]: parameter["schema"]["minimum"] for parameter in parameters
               if parameter.get("schema", {}).get("type") == "integer"}
    if founder:
        numbers["vault"] = uuid.UUID(bytes=founder.vault)
    return re.sub(r"\{(\w+)\}", lambda match: str(numbers.get(match[1], uuid.uuid4())), path)


def register_for(url, path):
    """A new account, for some paths with a vault: its token, its values, and the vault's founder."""
    token, account = register(url)
    if "{vault}" not in path and not path.startswith("/v1/invitations"):
        return token, account, None
    founder, values = found_vault(url, token)
    return token, {**account, **values}, founder


def headers_of(path, token, founder):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if path in ("/v1/items/{id}", "/v1/account/keyring", "/v1/vaults/{vault}/items/{id}"):
        headers["If-None-Match"] = "*"
    if path.startswith("/v1/vaults/{vault}/items"):
        headers["Vault-Head"] = str(founder.count)
    return headers


def main(document_path, url, certificate):
    SESSION.verify = certificate
    document = Document(document_path)
    faults, count, fields = [], 0, set()
    for method, path, schema in document.operations():
        _, account, _ = register_for(url, path)
        for place, value, words, bases in list(document.extremes(schema, account)):
            # The key that there is cannot be a new one.
            if value == account["PasswordKey"] and place[-1] != "currentPasswordKey":
                continue
            # Failures of a key are counted for each account.
            token, fresh, founder = register_for(url, path)
            body = document.usual(schema, fresh)
            for base_place, base in reversed(bases):
                if base_place:
                    body = with_value(body, base_place, base(fresh))
            for companion in COMPANIONS.get(str(place[-1]) if place else "", []):
                properties = document.resolved(schema)[0]["properties"]
                if companion in properties and len(place) == 1:
                    body[companion] = 0 if companion.endswith("Revision") else sealed()
            text = text_of(with_value(body, place, value))
            if not document.allows(schema, json.loads(text)):
                continue
            if "currentPasswordKey" not in place:
                text = text.replace(json.dumps(account["PasswordKey"]), json.dumps(fresh["PasswordKey"]))
            reply = SESSION.request(
                method.upper(), url + path_of(document, path, founder), data=text.encode(),
                headers=headers_of(path, token, founder), timeout=120)
            count += 1
            fields.add((method, path, place))
            if reply.status_code == 429 or reply.status_code >= 500:
                faults.append(f"{method} {path}: {reply.status_code} {reply.text[:200]}")
            elif reply.status_code in (400, 413, 415, 422):
                problem = reply.json()
                if f"`{problem['code']}`" not in words:
                    shown = value if isinstance(value, Number) else json.dumps(value)
                    faults.append(
                        f"{method} {path} {'.'.join(map(str, place))} = {shown[:80]} ({len(shown)}): {reply.status_code} "
                        f"{problem['code']} {problem.get('field', '')} {problem.get('detail', '')}")
    print(f"{count} values of {len(fields)} fields")
    for fault in faults:
        print(fault)
    if len(fields) < 60:
        sys.exit("too few fields were found in the document")
    sys.exit(1 if faults else 0)


main(*sys.argv[1:])
