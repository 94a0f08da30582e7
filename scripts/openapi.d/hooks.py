"""Gives every made-up request a session: of a fresh account, and of another one when the last has been ended."""

import base64
import os
import uuid

import requests
import schemathesis

URL = os.environ["SALTERN_TEST_URL"]
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]


@schemathesis.auth()
class FreshAccount:
    """Asked for again by the tool whenever a reply is 401."""

    def get(self, case, context):
        reply = requests.post(
            f"{URL}/v1/accounts",
            json={
                "userid": f"{uuid.uuid4()}@example.org",
                "passwordKey": base64.b64encode(b"\xff" + os.urandom(31)).decode(),
                "kdf": {"iterations": 600_000},
            },
            verify=CERTIFICATE,
            timeout=30,
        )
        reply.raise_for_status()
        return reply.json()["session"]["token"]

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"
