"""Somebody who uses every route, in proportion, from registration to deletion."""

import base64
import hashlib
import hmac
import os
import random
import struct
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from traffic.blocking import BlockingConnection
from traffic.founder import Founder
from traffic.patience import passes
from traffic.people import ITERATIONS, fresh_id, item, password_key, sealed, session_token, share
from traffic.wire import Fields, Reply, Target, request

ITEMS = 24


class Unexpected(Exception):
    """A reply that is not among those that the request may have."""


class Disturbed(Exception):
    """A reply of a slow machine: the same request can succeed when it is sent again."""


def one_time_code(secret: str, step: int) -> str:
    """RFC 6238: SHA-1, six digits."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1)
    offset = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


class Visitor:
    """One person after another, over one connection."""

    def __init__(self, target: Target, source: str, seed: int):
        self.target = target
        self.connection = BlockingConnection(target, source)
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.done = 0
        # What a person does between registration and deletion, and how often.
        self.habits: list[tuple[float, Callable[[], None]]] = [
            (30, self.read_item),
            (22, self.write_item),
            (2, self.write_and_read_bytes),
            (12, self.list_changes),
            (4, self.list_items),
            (4, self.delete_and_restore),
            (2, self.read_versions),
            (4, self.send_batch),
            (4, self.log_in_and_out),
            (4, self.look_at_account),
            (5, self.share),
            (3, self.manage_shares),
            (2, self.ask_for_parameters),
            (2, self.change_credential),
            (1.5, self.put_keyring),
            (1, self.change_userid),
            (1, self.recover),
            (1, self.second_factor),
            (1, self.rotate),
            (0.5, self.export),
            (1, self.open_page),
            (0.5, self.share_vault),
            (2, self.be_refused),
            (0.5, self.listen),
            (1, self.sessions),
            (0.5, self.look_around),
            (0.5, self.use_services_and_passkeys),
        ]

    def ask(
        self,
        method: str,
        template: str,
        body: Any = None,
        *,
        path: str | None = None,
        token: str | None = "",
        fields: Fields | None = None,
        expect: tuple[int, ...] = (200,),
    ) -> Reply:
        """One request of an operation of openapi.yaml. The person's own token goes along unless another is named."""
        data = request(method, path or template, body, self.token if token == "" else token, fields)
        begin = time.monotonic()
        reply = self.connection.exchange(data, has_body=method != "HEAD")
        self.judge(method, template, reply, expect, time.monotonic() - begin)
        return reply

    def judge(self, method: str, template: str, reply: Reply, expect: tuple[int, ...], seconds: float) -> None:
        """Counts a request by its reply. A disturbed one does not count as a use of the operation."""
        operation = f"{method} {template}"
        self.done += 1
        if reply.status not in expect:
            # A reply to HEAD has no code.
            is_disturbed = passes(reply, seconds) or (
                method == "HEAD" and reply.status == 503 and "retry-after" in reply.fields
            )
            failure = Disturbed if is_disturbed else Unexpected
            raise failure(f"{operation}: {reply.status} {reply.body[:300]!r}")
        self.counts[operation] += 1

    def live(self, requests: int) -> None:
        """A life of about so many requests."""
        end = self.done + requests
        self.register()
        weights = [weight for weight, _ in self.habits]
        while self.done < end:
            self.random.choices(self.habits, weights)[0][1]()
        self.ask("DELETE", "/v1/account", {"currentPasswordKey": self.key}, expect=(204,))

    def register(self) -> None:
        self.userid, self.key, self.token = f"{os.urandom(8).hex()}@example.org", password_key(), None
        body = {
            "userid": self.userid,
            "passwordKey": self.key,
            "kdf": {"iterations": ITERATIONS},
            "keyring": sealed(256),
        }
        made = self.ask("POST", "/v1/accounts", body, expect=(201,)).json
        self.token, self.keyring_revision = made["session"]["token"], 1
        self.device_token = made["deviceToken"]
        self.items = [fresh_id() for _ in range(ITEMS)]
        for item_id in self.items:
            self.put(item_id, {"If-None-Match": "*"}, (201,))
        self.cursor = self.ask("GET", "/v1/changes").json["cursor"]

    def put(self, item_id: str, fields: Fields, expect: tuple[int, ...]) -> None:
        size = self.random.choice([64, 200, 200, 1_000, 1_000, 4_000, 20_000, 100_000])
        self.ask("PUT", "/v1/items/{id}", item(size), path=f"/v1/items/{item_id}", fields=fields, expect=expect)

    def any_item(self) -> str:
        return self.random.choice(self.items)

    # Items

    def read_item(self) -> None:
        self.ask("GET", "/v1/items/{id}", path=f"/v1/items/{self.any_item()}")

    def write_item(self) -> None:
        self.put(self.any_item(), {"If-Match": "*"}, (200,))

    def write_and_read_bytes(self) -> None:
        path = f"/v1/items/{self.any_item()}/body"
        fields = {"If-Match": "*", "Content-Type": "application/octet-stream"}
        self.ask("PUT", "/v1/items/{id}/body", os.urandom(3_000), path=f"{path}?format=aes-256-gcm", fields=fields)
        self.ask("GET", "/v1/items/{id}/body", path=path)

    def list_items(self) -> None:
        self.ask("GET", "/v1/items", path="/v1/items?limit=10")

    def list_changes(self) -> None:
        page = self.ask("GET", "/v1/changes", path=f"/v1/changes?limit=20&since={self.cursor}").json
        self.cursor = page["cursor"]

    def delete_and_restore(self) -> None:
        path = f"/v1/items/{self.any_item()}"
        self.ask("DELETE", "/v1/items/{id}", path=path, fields={"If-Match": "*"})
        self.ask("POST", "/v1/items/{id}/restore", path=f"{path}/restore", fields={"If-Match": "*"})

    def read_versions(self) -> None:
        path = f"/v1/items/{self.any_item()}/versions"
        for version in self.ask("GET", "/v1/items/{id}/versions", path=path).json["versions"][:1]:
            path = f"{path}/{version['revision']}"
            self.ask("GET", "/v1/items/{id}/versions/{revision}", path=path)

    def send_batch(self) -> None:
        operations: list[dict[str, Any]] = [
            {"op": "put", "id": item_id, **item(300)} for item_id in self.random.sample(self.items, 8)
        ]
        self.ask("POST", "/v1/items/batch", {"operations": operations})

    # Sessions, credentials

    def log_in(self, **further: str) -> str:
        body = {"userid": self.userid, "passwordKey": self.key, "device": {"token": self.device_token}, **further}
        made = self.ask("POST", "/v1/sessions", body, token=None, expect=(201,)).json
        self.device_token = made["deviceToken"]
        token: str = made["session"]["token"]
        return token

    def log_in_and_out(self) -> None:
        self.ask("DELETE", "/v1/sessions/current", token=self.log_in(), expect=(204,))

    def sessions(self) -> None:
        self.log_in()
        self.log_in()
        sessions = self.ask("GET", "/v1/sessions").json["sessions"]
        other = next(session["id"] for session in sessions if not session["current"])
        self.ask("DELETE", "/v1/sessions/{id}", path=f"/v1/sessions/{other}", expect=(204,))
        self.ask("DELETE", "/v1/sessions", expect=(200, 204))

    def with_new_key(self, key: str) -> dict[str, Any]:
        return {
            "currentPasswordKey": self.key,
            "passwordKey": key,
            "kdf": {"iterations": ITERATIONS},
            "keyring": sealed(256),
            "keyringRevision": self.keyring_revision,
            "recoveryKeyring": sealed(200),
        }

    def took_new_key(self, key: str, reply: Reply) -> None:
        self.key = key
        self.keyring_revision = reply.json.get("keyringRevision", self.keyring_revision)
        self.device_token = reply.json.get("deviceToken", self.device_token)

    def change_credential(self) -> None:
        key = password_key()
        self.took_new_key(key, self.ask("PUT", "/v1/account/credential", self.with_new_key(key)))

    def change_userid(self) -> None:
        key, userid = password_key(), f"{os.urandom(8).hex()}@example.org"
        self.took_new_key(key, self.ask("PUT", "/v1/account/userid", {**self.with_new_key(key), "userid": userid}))
        self.userid = userid

    def put_keyring(self) -> None:
        self.keyring_revision = self.ask("GET", "/v1/account/keyring").json["revision"]
        reply = self.ask(
            "PUT", "/v1/account/keyring", {"keyring": sealed(300)}, fields={"If-Match": f'"{self.keyring_revision}"'}
        )
        self.keyring_revision = reply.json["revision"]
        self.ask("GET", "/v1/account/keyring/kept")

    def recover(self) -> None:
        recovery_key, key = password_key(), password_key()
        body = {
            "currentPasswordKey": self.key,
            "recoveryKey": recovery_key,
            "keyring": sealed(200),
            "accountKeyringRevision": self.keyring_revision,
        }
        self.keyring_revision = self.ask("PUT", "/v1/account/recovery", body).json["keyringRevision"]
        made = self.ask(
            "POST", "/v1/recoveries", {"userid": self.userid, "recoveryKey": recovery_key}, token=None, expect=(201,)
        ).json
        body = self.with_new_key(key)
        del body["currentPasswordKey"]
        self.took_new_key(key, self.ask("PUT", "/v1/account/credential", body, token=made["session"]["token"]))
        self.token = self.log_in()
        self.ask("DELETE", "/v1/account/recovery", {"currentPasswordKey": self.key}, expect=(204,))

    def second_factor(self) -> None:
        proof = {"currentPasswordKey": self.key}
        secret = self.ask("POST", "/v1/account/totp", proof, expect=(201,)).json["secret"]
        code = one_time_code(secret, int(time.time()) // 30)
        codes = self.ask("POST", "/v1/account/totp/confirm", {"totp": code}).json["recoveryCodes"]
        self.ask("DELETE", "/v1/sessions/current", token=self.log_in(totp=codes[0]), expect=(204,))
        self.ask("POST", "/v1/account/totp/recovery-codes", proof)
        self.ask("DELETE", "/v1/account/totp", proof, expect=(204,))

    def rotate(self) -> None:
        proof = {"currentPasswordKey": self.key}
        given_up = self.ask("POST", "/v1/rotations", proof, expect=(201,)).json["id"]
        self.ask("DELETE", "/v1/rotations/{id}", path=f"/v1/rotations/{given_up}", expect=(204,))
        rotation = self.ask("POST", "/v1/rotations", proof, expect=(201,)).json["id"]
        page = self.ask("GET", "/v1/items", path="/v1/items?limit=500&fields=meta").json
        staged = [{"id": old["id"], "ifRevision": old["revision"], **item(200)} for old in page["items"]]
        self.ask("PUT", "/v1/rotations/{id}/items", {"items": staged}, path=f"/v1/rotations/{rotation}/items")
        key = password_key()
        self.took_new_key(
            key,
            self.ask(
                "POST", "/v1/rotations/{id}/commit", self.with_new_key(key), path=f"/v1/rotations/{rotation}/commit"
            ),
        )

    # The rest

    def look_at_account(self) -> None:
        self.ask("GET", "/v1/account")
        self.ask("GET", "/v1/account/events", path="/v1/account/events?limit=20")

    def export(self) -> None:
        self.ask("PUT", "/v1/account/receipt", {"receipt": os.urandom(16).hex()})
        self.ask("POST", "/v1/account/export", {"currentPasswordKey": self.key})

    def share(self) -> None:
        made = self.ask("POST", "/v1/shares", {**share(500), "maxViews": 3}, expect=(201,)).json
        path = f"/v1/shares/{made['id']}"
        self.ask("HEAD", "/v1/shares/{id}", path=path, token=None)
        for _ in range(3):
            self.ask("GET", "/v1/shares/{id}", path=path, token=None)
        self.ask("GET", "/v1/shares/{id}", path=path, token=None, expect=(404,))

    def manage_shares(self) -> None:
        made = self.ask("POST", "/v1/shares", share(200), expect=(201,)).json
        path, token = f"/v1/shares/{made['id']}", made["manageToken"]
        self.ask("GET", "/v1/shares")
        self.ask("PUT", "/v1/shares/{id}", share(300), path=path, token=token)
        self.ask("DELETE", "/v1/shares/{id}", path=path, token=token, expect=(204,))
        self.ask("DELETE", "/v1/shares/{id}", path=path, token=token, expect=(404,))

    # Vaults

    def in_vault(self, path: str, method: str, route: str, *arguments: Any, **more: Any) -> Reply:
        """A request below the path of a vault."""
        shown = route.partition("?")[0]
        for name in ("item", "number", "revision"):
            if name in more:
                route = route.replace("{" + ("id" if name == "item" else name) + "}", str(more.pop(name)))
        return self.ask(method, f"/v1/vaults/{{vault}}{shown}", *arguments, path=path + route, **more)

    def share_vault(self) -> None:
        """A vault with one member, and an invitation that nobody accepts."""
        founder = Founder()
        founding = {"entry": encoded(founder.founding)}
        made = self.ask("POST", "/v1/vaults", founding, expect=(201,)).json
        path = f"/v1/vaults/{made['id']}"
        self.ask("GET", "/v1/vaults")
        self.in_vault(path, "GET", "")
        self.use_vault_items(path, founder)
        invitation, token = os.urandom(16), os.urandom(32)
        body = {
            "entry": encoded(founder.invite(invitation)),
            "tokenHash": encoded(hashlib.sha256(token).digest()),
            "preview": encoded(os.urandom(190)),
            "keyBox": encoded(os.urandom(60)),
        }
        self.in_vault(path, "POST", "/invitations", body, expect=(201,))
        self.in_vault(path, "GET", "/invitations")
        link = f"/v1/invitations/{uuid.UUID(bytes=invitation)}"
        bearer = "slv_" + base64.urlsafe_b64encode(token).decode().rstrip("=")
        self.ask("GET", "/v1/invitations/{id}", path=link, token=bearer)
        joining = {"entry": encoded(founder.founding), "token": encoded(token)}
        self.ask("POST", "/v1/invitations/{id}/acceptance", joining, path=f"{link}/acceptance", expect=(422,))
        self.in_vault(path, "POST", "/log", {"entry": encoded(founder.revoke(invitation))})
        self.in_vault(path, "GET", "/log?after=1")
        head = {"number": founder.count, "hash": encoded(founder.previous)}
        self.in_vault(path, "PUT", "/seen", {**head, "signature": encoded(founder.seen())}, expect=(204,))
        self.recover_vault(path, founder, head)
        self.in_vault(path, "DELETE", "", expect=(204,))
        self.in_vault(path, "GET", "", expect=(404,))

    def recover_vault(self, path: str, founder: Founder, head: dict[str, Any]) -> None:
        """What has no use for a vault that is whole and has one member."""
        self.in_vault(path, "PUT", "/log", {"entries": []}, expect=(200, 409))
        self.in_vault(path, "POST", "/recovered", {"head": head}, expect=(204, 409))
        claim = {"member": str(uuid.uuid4()), "head": head, "signature": encoded(founder.seen())}
        self.in_vault(path, "POST", "/claim", claim, expect=(404, 409, 422))
        self.in_vault(path, "PUT", "/boxes", {"generation": 1, "boxes": []}, expect=(204,))
        self.in_vault(path, "DELETE", "/boxes/mine", expect=(204,))
        self.in_vault(path, "GET", "/seals/{number}", number=1, expect=(404,))
        self.in_vault(path, "PUT", "/seals/{number}", {"list": ""}, number=1, expect=(404, 422))
        self.in_vault(path, "POST", "/owner", {"entry": encoded(founder.founding)}, expect=(422,))

    def use_vault_items(self, path: str, founder: Founder) -> None:
        one, two = fresh_id(), fresh_id()
        head = {"Vault-Head": str(founder.count)}
        new, present = {**head, "If-None-Match": "*"}, {**head, "If-Match": "*"}

        def content(size: int) -> dict[str, str]:
            return {"format": "saltern-1", "collection": "notes", "body": encoded(founder.sealed(size))}

        self.in_vault(path, "PUT", "/items/{id}", content(64), item=one, fields=new, expect=(201,))
        self.in_vault(path, "PUT", "/items/{id}", content(1_024), item=one, fields=present)
        self.in_vault(path, "GET", "/items/{id}", item=one)
        fields = {**new, "Content-Type": "application/octet-stream"}
        self.in_vault(
            path, "PUT", "/items/{id}/body?format=saltern-1", founder.sealed(64), item=two, fields=fields, expect=(201,)
        )
        self.in_vault(path, "GET", "/items/{id}/body", item=two)
        self.in_vault(path, "GET", "/items")
        self.in_vault(path, "GET", "/changes")
        for version in self.in_vault(path, "GET", "/items/{id}/versions", item=one).json["versions"][:1]:
            revision = version["revision"]
            self.in_vault(path, "GET", "/items/{id}/versions/{revision}", item=one, revision=revision)
        batch = {"operations": [{"op": "put", "id": fresh_id(), **content(192)}]}
        self.in_vault(path, "POST", "/items/batch", batch, fields=head)
        self.in_vault(path, "DELETE", "/items/{id}", item=two, fields=present)
        self.in_vault(path, "POST", "/items/{id}/restore", item=two, fields=present)

    def open_page(self) -> None:
        self.ask("GET", "/j/{id}", path="/j/0123456789abcdefABCDEF", token=None)
        self.ask("GET", "/s/{id}", path="/s/0123456789abcdefABCDEF", token=None)
        self.ask("GET", "/s/{id}/{passphrase}", path="/s/0123456789abcdefABCDEF/abc", token=None)
        self.ask("GET", "/assets/{name}", path="/assets/nothing.js", token=None, expect=(200, 404))
        for name in ["apple-app-site-association", "assetlinks.json"]:
            self.ask("GET", f"/.well-known/{name}", token=None, expect=(200, 404))

    def use_services_and_passkeys(self) -> None:
        """The server of a soak offers neither: each request is refused."""
        for name in ["jwks.json", "oauth-authorization-server"]:
            self.ask("GET", f"/.well-known/{name}", token=None, expect=(404,))
        self.ask("POST", "/v1/tokens", {"audience": "billing"}, expect=(404,))
        self.ask("POST", "/v1/tokens/inspect", {"token": "x"}, token=None, expect=(401,))
        self.ask("POST", "/v1/service-events/lease", {"destination": "jobs"}, token=None, expect=(401,))
        self.ask("POST", "/v1/service-events/ack", {"destination": "jobs", "ids": []}, token=None, expect=(401, 422))
        self.ask("POST", "/v1/passkeys/options", token=None, expect=(404,))
        self.ask("POST", "/v1/passkeys/sessions", {"credential": {}}, token=None, expect=(404, 422))
        self.ask("GET", "/v1/account/passkeys", expect=(200, 404))
        self.ask("POST", "/v1/account/passkeys", {"currentPasswordKey": self.key}, expect=(404, 422))
        self.ask("POST", "/v1/account/passkeys/confirm", {"currentPasswordKey": self.key}, expect=(404, 422))
        begin = {"purpose": "exportAccount", "bodySHA256": "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="}
        self.ask("POST", "/v1/account/passkeys/options", begin, expect=(404, 409))
        for method, path, body in [
            ("PUT", "/v1/account/passkeys/{id}/box", {"currentPasswordKey": self.key}),
            ("PATCH", "/v1/account/passkeys/{id}", {"name": "Key"}),
            ("DELETE", "/v1/account/passkeys/{id}", {"currentPasswordKey": self.key}),
        ]:
            self.ask(method, path, body, path=path.replace("{id}", "AQ"), expect=(204, 403, 404, 422))

    def ask_for_parameters(self) -> None:
        self.ask("POST", "/v1/kdf", {"userid": self.userid}, token=None)
        self.ask("POST", "/v1/kdf", {"userid": f"{os.urandom(4).hex()}@example.org"}, token=None)

    def look_around(self) -> None:
        for path in ["/v1/service", "/v1/health/live", "/v1/health/ready"]:
            self.ask("GET", path, token=None)

    def listen(self) -> None:
        """A live stream, until its first event."""
        stream = BlockingConnection(self.target, self.connection.source)
        try:
            begin = time.monotonic()
            stream.open().sendall(request("GET", "/v1/changes/stream", token=self.token))
            reply = stream.reply(has_body=False)
            if reply.status != 200:
                reply.body = stream.exactly(int(reply.fields.get("content-length", "0")))
            self.judge("GET", "/v1/changes/stream", reply, (200,), time.monotonic() - begin)
            stream.until(b"event: change")
        finally:
            stream.close()

    def be_refused(self) -> None:
        """What clients do wrong, and what others try."""
        wrong = {"userid": self.userid, "passwordKey": password_key(), "device": {"token": self.device_token}}
        self.ask("POST", "/v1/sessions", wrong, token=None, expect=(401, 429))
        self.ask("GET", "/v1/account", token=session_token(), expect=(401,))
        self.ask("GET", "/v1/items/{id}", path=f"/v1/items/{fresh_id()}", expect=(404,))
        self.put(self.any_item(), {"If-Match": '"1"'}, (200, 412))
        self.ask("PUT", "/v1/items/{id}", b'{"format":', path=f"/v1/items/{fresh_id()}", expect=(400, 428))
        self.log_in_after_failure()

    def log_in_after_failure(self) -> None:
        """A right one, so that failures do not add up to a delay."""
        self.ask("DELETE", "/v1/sessions/current", token=self.log_in(), expect=(204,))
