"""Gives every made-up request a session: of a fresh account, and of another one when the last has been ended.

And gives every other one that fits the document what no schema can say, so that replies of success are seen too: a userid
that is canonical, a key that was stretched, bytes that are sealed, one precondition.
"""

import base64
import hashlib
import json
import os
import re
import uuid
from functools import cache
from pathlib import Path

import requests
import schemathesis
import yaml
from schemathesis import GenerationMode

URL = os.environ["SALTERN_TEST_URL"]
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]


@cache
def document():
    return yaml.safe_load((Path(__file__).parents[2] / "openapi.yaml").read_text(encoding="utf-8"))


def codes_of(response):
    """Those that the description of a response names in its last paragraph: to generators `code` is any string."""
    if "$ref" in response:
        response = document()["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    sentence = re.search(r"`code`: ([^.]*)\.\s*$", response["description"])
    return set(re.findall(r"`(\w+)`", sentence[1])) if sentence else set()


@schemathesis.check
def known_code(ctx, response, case):
    """Every problem has a code that the description of its operation names."""
    responses = document()["paths"][case.operation.path][case.operation.method.lower()]["responses"]
    if not response.content or not response.headers.get("content-type", [""])[0].startswith("application/problem+json"):
        return
    described = responses.get(str(response.status_code))
    if described and case.method.lower() == case.operation.method.lower():
        code, known = response.json()["code"], codes_of(described)
        assert code in known, f"`{code}` is not among the codes of {response.status_code}: {sorted(known)}"


@schemathesis.auth()
class FreshAccount:
    """Asked for again by the tool whenever a reply is 401."""

    def get(self, case, context):
        key = base64.b64encode(b"\xff" + os.urandom(31)).decode()
        reply = requests.post(
            f"{URL}/v1/accounts",
            json={
                "userid": f"{uuid.uuid4()}@example.org",
                "passwordKey": key,
                "kdf": {"iterations": 600_000},
            },
            verify=CERTIFICATE,
            timeout=120,
        )
        reply.raise_for_status()
        return reply.json()["session"]["token"], key

    def set(self, case, data, context):
        token, key = data
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {token}"
        # Half of the dangerous calls carry the right key, unless it is what was made wrong.
        is_positive = case.meta is None or case.meta.generation.mode == GenerationMode.POSITIVE
        if not is_positive or not isinstance(case.body, dict):
            return
        if "currentPasswordKey" in case.body and made_of(case.body, 1)[0] % 2 == 0:
            case.body = {**case.body, "currentPasswordKey": key}


def made_of(value, count):
    """Bytes that look random and are the same for the same value, so that a failure can be had again."""
    return hashlib.shake_256(json.dumps(value, sort_keys=True).encode()).digest(count)


def base64_of(value, count):
    return base64.b64encode(made_of(value, count)).decode()


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE or not isinstance(body, dict):
        return
    if made_of(body, 1)[0] % 2 or str(body.get("userid", "")).endswith("@example.org"):
        return
    made = dict(body)
    if "userid" in made:
        made["userid"] = f"{made_of(body, 8).hex()}@example.org"
    if "passwordKey" in made:
        made["passwordKey"] = base64_of(body, 32)
    if "recoveryKey" in made:
        made["recoveryKey"] = base64_of([body, "recovery"], 32)
    if "kdf" in made:
        made["kdf"] = {"iterations": 600_000}
    if made.get("keyring") is not None:
        made["keyring"] = base64_of(body, 90)
    if "sealed" in made:
        made["format"] = "aes-256-gcm"
        made["sealed"] = base64_of(body, 120)
        made["salt"] = base64_of(body, 16)
        if made.get("expiresAt") is not None:
            made["expiresAt"] = "2126-01-01T00:00:00Z"
    elif "format" in made:
        made["format"] = "opaque"
        made["body"] = base64_of(body, 120)
        if made.get("title") is not None:
            made["title"] = base64_of(body, 60)
        case.headers = dict(case.headers or {})
        if "If-Match" not in case.headers:
            case.headers["If-None-Match"] = "*"
        elif "If-None-Match" in case.headers:
            del case.headers["If-Match"]
    case.body = made
