"""Verifies identity tokens with three libraries across a rotation of the signing key, and tries to deceive each.

    tokens.py verify KEYS PID     rotates the keys of the file KEYS; the server PID reads them again
    tokens.py example FILE        runs a back end of the documents, and asks it

Called by tokens.sh. SALTERN_TEST_TOKEN is a session, SALTERN_TEST_SERVICE the credential of a service of the audience billing.
"""

import base64
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import requests
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey, KeySet

from traffic.patience import Answer, exchange_alone
from traffic.wire import Target, request

URL = os.environ["SALTERN_TEST_URL"]
CERTIFICATE = os.environ["SALTERN_TEST_CERTIFICATE"]
SESSION = os.environ["SALTERN_TEST_TOKEN"]
SERVICE = os.environ["SALTERN_TEST_SERVICE"]
EXECUTABLE = os.environ["SALTERN_TEST_EXECUTABLE"]
AUDIENCE = "billing"
KEYS = URL + "/.well-known/jwks.json"

Verify = Callable[[str], dict[str, Any]]


class Failure(Exception):
    """Something is not as it has to be."""


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Failure(f"expected {what}")


def post(path: str, token: str, body: dict[str, str]) -> Answer:
    return exchange_alone(Target.of(URL, CERTIFICATE), request("POST", path, body, token))


def new_token(audience: str = AUDIENCE) -> str:
    reply = post("/v1/tokens", SESSION, {"audience": audience})
    expect(reply.status == 200, f"a token, not {reply.status} {reply.body!r}")
    return str(reply.json["token"])


def is_active(token: str) -> bool:
    reply = post("/v1/tokens/inspect", SERVICE, {"token": token})
    expect(reply.status == 200, f"an inspection, not {reply.status} {reply.body!r}")
    return bool(reply.json["active"])


def published() -> Any:
    reply = requests.get(KEYS, verify=CERTIFICATE, timeout=180)
    expect(reply.headers["Cache-Control"] == "public, max-age=300, no-transform", "a cacheable key set")
    return reply.json()


def with_pyjwt() -> Verify:
    # Fetched again for each token: the server publishes a key long before it is used.
    keys = jwt.PyJWKClient(KEYS, lifespan=1, cooldown_duration=0)

    def verify(token: str) -> dict[str, Any]:
        key = keys.get_signing_key_from_jwt(token)
        return dict(jwt.decode(token, key, algorithms=["ES256"], audience=AUDIENCE, issuer=URL, leeway=30))

    return verify


def with_joserfc() -> Verify:
    claims = joserfc_jwt.JWTClaimsRegistry(
        leeway=30, iss={"essential": True, "value": URL}, aud={"essential": True, "value": AUDIENCE}
    )

    def verify(token: str) -> dict[str, Any]:
        keys = KeySet.import_key_set(published())
        decoded = joserfc_jwt.decode(token, keys, algorithms=["ES256"])
        claims.validate(decoded.claims)
        return dict(decoded.claims)

    return verify


class Validator(JWTBearerTokenValidator):
    """Authlib's validator of RFC 9068, which also requires the type and the claims of that document."""

    def get_jwks(self) -> Any:
        return published()


def with_authlib() -> Verify:
    validator = Validator(issuer=URL, resource_server=AUDIENCE)

    def verify(token: str) -> dict[str, Any]:
        claims = validator.authenticate_token(token)
        claims.validate()
        return dict(claims)

    return verify


def new_verifiers() -> dict[str, Verify]:
    return {"PyJWT": with_pyjwt(), "joserfc": with_joserfc(), "authlib": with_authlib()}


def expect_refused(name: str, verify: Verify, what: str, token: str) -> None:
    try:
        verify(token)
    except Failure:
        raise
    except Exception:  # Each library has errors of its own.
        return
    raise Failure(f"expected {name} to refuse {what}")


def base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def encoded(value: dict[str, Any]) -> str:
    return base64url(json.dumps(value).encode())


def forgeries(token: str) -> dict[str, str]:
    """Tokens that no verifier may take, and no inspection call active."""
    header, payload, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False})
    kid = jwt.get_unverified_header(token)["kid"]
    entry = next(key for key in published()["keys"] if key["kid"] == kid)
    public = ECKey.import_key(entry)
    attacker = ec.generate_private_key(ec.SECP256R1())
    pem = attacker.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

    def of_attacker(more: dict[str, Any]) -> str:
        return jwt.encode(claims, pem.decode(), algorithm="ES256", headers={"typ": "at+jwt", **more})

    def by_hmac(secret: bytes) -> str:
        # The libraries refuse such a secret.
        message = f"{encoded({'alg': 'HS256', 'typ': 'at+jwt', 'kid': kid})}.{payload}"
        return f"{message}.{base64url(hmac.digest(secret, message.encode(), 'sha256'))}"

    none = encoded({"alg": "none", "typ": "at+jwt", "kid": kid})
    own_key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(attacker.public_key()))
    return {
        "no algorithm": f"{none}.{payload}.",
        "no algorithm, with a signature": f"{none}.{payload}.{signature}",
        "no signature": f"{header}.{payload}.",
        "the public key in PEM as a secret": by_hmac(public.as_pem(private=False)),
        "the public key in DER as a secret": by_hmac(public.as_der(private=False)),
        "the coordinates as a secret": by_hmac(json.dumps(entry).encode()),
        "another key under our name": of_attacker({"kid": kid}),
        "a key in the header": of_attacker({"kid": kid, "jwk": own_key}),
        "a name that is a path": of_attacker({"kid": "../../../dev/null"}),
        "a name that is SQL": of_attacker({"kid": "x' UNION SELECT 'key' --"}),
        "a key set of the attacker": of_attacker({"kid": "own", "jku": "https://attacker.example/jwks.json"}),
        "other claims": f"{header}.{encoded({**claims, 'plan': 'pro'})}.{signature}",
        "a later end": f"{header}.{encoded({**claims, 'exp': claims['exp'] + 3600})}.{signature}",
        "a signature of zeros": f"{header}.{payload}.{'A' * 86}",
        "a signature of another form": f"{header}.{payload}.{encoded({'r': 1, 's': 1})}",
    }


def add_key(file: Path, server: int) -> None:
    """Adds the next key and waits until the server publishes it."""
    before = len(published()["keys"])
    subprocess.run([EXECUTABLE, "signing-key", "rotate", "--file", str(file)], check=True, stdout=subprocess.DEVNULL)
    reload_server(server, lambda: len(published()["keys"]) == before + 1, "the next key to be published")


def let_a_day_pass(file: Path) -> None:
    """Moves all first uses back by a day."""
    lines = []
    for line in file.read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            moment, key = line.split(" ")
            earlier = datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) - timedelta(days=1, minutes=1)
            line = earlier.strftime("%Y-%m-%dT%H:%M:%SZ") + " " + key
        lines.append(line)
    newest = file.with_name("signing-keys.new")
    newest.touch(mode=0o600)
    newest.write_text("\n".join(lines) + "\n", encoding="ascii")
    newest.rename(file)


def reload_server(server: int, is_done: Callable[[], bool], what: str) -> None:
    os.kill(server, signal.SIGHUP)
    for _ in range(1_800):
        # Each loop has keys of its own for a moment.
        if all(is_done() for _ in range(16)):
            return
        time.sleep(0.1)
    raise Failure(f"expected {what}")


def verify(file: Path, server: int) -> None:
    verifiers = new_verifiers()
    first = new_token()
    names = {tuple(check(first)[name] for name in ("sub", "sid", "jti")) for check in verifiers.values()}
    expect(len(names) == 1, "the same claims from all libraries")

    add_key(file, server)
    second = new_token()
    kids = [jwt.get_unverified_header(token)["kid"] for token in (first, second)]
    expect(kids[0] == kids[1], "the next key not to sign for a day")
    let_a_day_pass(file)
    reload_server(server, lambda: jwt.get_unverified_header(new_token())["kid"] != kids[0], "the next key to sign")
    third = new_token()
    kid = jwt.get_unverified_header(third)["kid"]
    expect(kid != kids[0], "another key to sign")
    expect({key["kid"] for key in published()["keys"]} == {kid, kids[0]}, "both keys to be published")
    for name, check in verifiers.items():
        for token in (first, second, third):
            expect(check(token)["aud"] == AUDIENCE, f"{name} to take a token of either key")
    for token in (first, second, third):
        expect(is_active(token), "the inspection to take a token of either key")

    attempts = forgeries(third)
    attempts["another audience"] = new_token("support")
    for what, token in attempts.items():
        for name, check in verifiers.items():
            expect_refused(name, check, what, token)
        expect(not is_active(token), f"the inspection to refuse {what}")
    print(f"{len(attempts)} forgeries refused by {len(verifiers)} libraries and the inspection")

    let_a_day_pass(file)
    subprocess.run([EXECUTABLE, "signing-key", "prune", "--file", str(file)], check=True, stdout=subprocess.DEVNULL)
    reload_server(server, lambda: len(published()["keys"]) == 1, "the replaced key to be removed")
    # Without the keys that the earlier verifiers have cached.
    for name, check in new_verifiers().items():
        check(third)
        expect_refused(name, check, "a key that was removed", first)
    expect(is_active(third) and not is_active(first), "the inspection to have the present key only")


def ask(port: int, token: str) -> tuple[int, str]:
    """The reply of the example."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def example(file: Path) -> None:
    """The back end of the documents, on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    text = file.read_text(encoding="utf-8").replace("https://sync.example.com", URL).replace("8000", str(port))
    expect(URL in text, "the example to name its issuer")
    program = subprocess.Popen([sys.executable, "-c", text], env={**os.environ, "SSL_CERT_FILE": CERTIFICATE})
    try:
        for _ in range(1_800):
            try:
                ask(port, "")
                break
            except OSError:
                expect(program.poll() is None, "the example to go on")
                time.sleep(0.1)
        status, body = ask(port, new_token())
        expect(status == 200 and body.endswith(" has the plan default\n"), f"the plan, not {status} {body}")
        for token in (new_token("support"), SESSION, "", "a.b.c"):
            expect(ask(port, token)[0] == 401, "the example to refuse what is no token of its audience")
    finally:
        program.terminate()
        program.wait()


def main() -> None:
    os.environ["SSL_CERT_FILE"] = CERTIFICATE
    match sys.argv[1:]:
        case ["verify", file, server]:
            verify(Path(file), int(server))
        case ["example", file]:
            example(Path(file))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
