"""People with items: made before the database is distributed, and looked at afterwards. Called by scripts/citus."""

import argparse
import json
import sys

from traffic.blocking import BlockingConnection
from traffic.founder import Founder
from traffic.people import ITERATIONS, base64_of, fresh_id, item, password_key
from traffic.wire import Target, request

PEOPLE = 12
ITEMS = 8


def fill(connection: BlockingConnection) -> list[dict[str, object]]:
    people: list[dict[str, object]] = []
    for number in range(PEOPLE):
        userid, key = f"moved-{number}-{fresh_id()}@example.org", password_key()
        body = {"userid": userid, "passwordKey": key, "kdf": {"iterations": ITERATIONS}}
        reply = connection.exchange(request("POST", "/v1/accounts", body))
        assert reply.status == 201, (reply.status, reply.body)
        token, items = reply.json["session"]["token"], {}
        for _ in range(ITEMS):
            path, content = f"/v1/items/{fresh_id()}", item(64)
            reply = connection.exchange(request("PUT", path, content, token, {"If-None-Match": "*"}))
            assert reply.status == 201, (reply.status, reply.body)
            items[path] = content["body"]
        versions = {path: replace(connection, token, path, items) for path in list(items)[:2]}
        keyring = replace_keyring(connection, token)
        vault = found(connection, token)
        people.append({
            "userid": userid, "key": key, "token": token, "items": items, "versions": versions, "keyring": keyring, "vault": vault,
        })
    return people


def found(connection: BlockingConnection, token: str) -> dict[str, str]:
    """A shared vault, usually on another shard than its owner's account; its items by their paths."""
    founder, items = Founder(), {}
    reply = connection.exchange(request("POST", "/v1/vaults", {"entry": base64_of(founder.founding)}, token))
    assert reply.status == 201, (reply.status, reply.body)
    for _ in range(ITEMS):
        path = f"/v1/vaults/{reply.json['id']}/items/{fresh_id()}"
        content = {"format": "saltern-1", "collection": "notes", "body": base64_of(founder.sealed(64))}
        stored = connection.exchange(request("PUT", path, content, token, {"If-None-Match": "*", "Vault-Head": "1"}))
        assert stored.status == 201, (stored.status, stored.body)
        items[path] = content["body"]
    return items


def replace(connection: BlockingConnection, token: str, path: str, items: dict[str, str]) -> str:
    """Gives the item another content, and returns the one that the server keeps as a version."""
    content, earlier = item(64), items[path]
    reply = connection.exchange(request("PUT", path, content, token, {"If-Match": "*"}))
    assert reply.status == 200, (reply.status, reply.body)
    items[path] = content["body"]
    return earlier


def replace_keyring(connection: BlockingConnection, token: str) -> str:
    """Puts two keyrings, and returns the first one, which the server keeps."""
    keyrings = [item(64)["body"] for _ in range(2)]
    for keyring, condition in zip(keyrings, ({"If-None-Match": "*"}, {"If-Match": "*"}), strict=True):
        reply = connection.exchange(request("PUT", "/v1/account/keyring", {"keyring": keyring}, token, condition))
        assert reply.status in (200, 201), (reply.status, reply.body)
    return keyrings[0]


def look_at_kept(connection: BlockingConnection, person: dict[str, object]) -> list[str]:
    complaints = []
    token = str(person["token"])
    versions = person["versions"]
    assert isinstance(versions, dict)
    for path, body in versions.items():
        reply = connection.exchange(request("GET", f"{path}/versions", token=token))
        revisions = [version["revision"] for version in reply.json["versions"]]
        if len(revisions) != 1:
            complaints.append(f"{path} has the versions {revisions}")
            continue
        reply = connection.exchange(request("GET", f"{path}/versions/{revisions[0]}", token=token))
        if reply.status != 200 or reply.json["body"] != body:
            complaints.append(f"{path}, version {revisions[0]}: {reply.status}")
    reply = connection.exchange(request("GET", "/v1/account/keyring/kept", token=token))
    if [kept["keyring"] for kept in reply.json["keyrings"]] != [person["keyring"]]:
        complaints.append(f"{person['userid']} has other kept keyrings: {reply.body!r}")
    return complaints


def look(connection: BlockingConnection, people: list[dict[str, object]]) -> list[str]:
    complaints = []
    for person in people:
        token = str(person["token"])
        items, versions = person["items"], person["versions"]
        vault = person["vault"]
        assert isinstance(items, dict) and isinstance(versions, dict) and isinstance(vault, dict)
        for path, body in [*items.items(), *vault.items()]:
            reply = connection.exchange(request("GET", path, token=token))
            if reply.status != 200 or reply.json["body"] != body:
                complaints.append(f"{path}: {reply.status}")
        reply = connection.exchange(request("GET", "/v1/account", token=token))
        if reply.status != 200 or reply.json["usage"]["items"] != len(items):
            complaints.append(f"{person['userid']}: {reply.status} {reply.body!r}")
        elif reply.json["usage"]["versions"] != len(versions):
            complaints.append(f"{person['userid']}: {reply.json['usage']}")
        complaints += look_at_kept(connection, person)
        log_in = {"userid": person["userid"], "passwordKey": person["key"]}
        reply = connection.exchange(request("POST", "/v1/sessions", log_in))
        if reply.status != 201:
            complaints.append(f"{person['userid']} does not get in: {reply.status}")
    return complaints


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, help="PORT:CERTIFICATE")
    parser.add_argument("--fill", metavar="FILE")
    parser.add_argument("--look", metavar="FILE")
    options = parser.parse_args()
    port, _, certificate = options.server.partition(":")
    connection = BlockingConnection(Target(int(port), certificate))
    if options.fill:
        with open(options.fill, "w", encoding="utf-8") as file:
            json.dump(fill(connection), file)
    if options.look:
        with open(options.look, encoding="utf-8") as file:
            complaints = look(connection, json.load(file))
        for complaint in complaints:
            print(complaint)
        sys.exit(1 if complaints else 0)


main()
