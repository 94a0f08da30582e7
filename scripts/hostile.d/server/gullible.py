"""A client with one fault: it runs saltern-client, but for the command in which its fault shows.

`gullible.py PLACE CLIENT WORD…`. The file PLACE names the fault; flaws.py has the list.
"""

import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Login:
    """The words of a log-in, and the server to which it goes."""

    def __init__(self, words: list[str]):
        options = dict(zip(words[1::2], words[2::2], strict=False))
        self.port = urlsplit(options["--server"]).port
        self.userid = options["--userid"]
        self.certificate = options["--certificate"]
        self.password = Path(options["--password-file"]).read_text(encoding="utf-8").strip()

    def call(self, method: str, path: str, value: Any = None, port: int | None = None) -> tuple[http.client.HTTPResponse, bytes]:
        context = ssl.create_default_context(cafile=self.certificate)
        connection = http.client.HTTPSConnection("localhost", port or self.port, context=context, timeout=30)
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply, reply.read()

    def key(self, iterations: int) -> str:
        salt = f"localhost.saltern:{self.userid}".encode()
        both = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, iterations, 64)
        return base64.b64encode(both[:32]).decode()

    def ask(self) -> int:
        """The iterations that the server asks for."""
        _, body = self.call("POST", "/v1/kdf", {"userid": self.userid})
        iterations: int = json.loads(body)["iterations"]
        return iterations


def fail(fault: str, words: list[str], home: Path) -> int:
    """Shows the fault. Returns the exit status."""
    login = Login(words)
    if fault != "asks-nothing":
        with_no_answer = fault in ("sends-password", "sends-key")
        value = {"userid": login.password if fault == "sends-password" else login.userid}
        if fault == "sends-key":
            value["key"] = login.key(600_000)
        reply, _ = login.call("POST", "/v1/kdf", value)
        location = reply.getheader("Location")
        if fault == "follows" and location:
            try:
                login.call("GET", "/", port=urlsplit(location).port)
            except OSError:
                pass
        if with_no_answer:
            return 0
    work = home.parent
    kept = work / "phone.kept"
    match fault:
        case "hangs":
            time.sleep(600)
        case "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "odd-status":
            return 3
        case "says-nothing":
            return 76
        case "escapes":
            print("\x1b[2J")
        case "hoards":
            held = bytearray(b"x") * (300 << 20)
            time.sleep(1)
            return 0 * len(held)
        case "believes":
            login.call("POST", "/v1/sessions", {"userid": login.userid, "passwordKey": login.key(login.ask())})
        case "writes-outside":
            (work / "outside" / "escape").write_text("x")
        case "forgets-items":
            shutil.rmtree(home / ".local")
            shutil.copytree(kept / ".local", home / ".local")
        case "spoils-store":
            for path in (home / ".local").rglob("*"):
                if path.is_file():
                    path.write_bytes(b"spoiled")
        case "spoils-file":
            (home / "files" / "long").write_bytes(b"spoiled")
        case "removes-file":
            for path in (home / "files").glob("*.txt"):
                path.unlink()
    return 0


def escape(fault: str, home: Path) -> int:
    """What the folder of a device that takes every title could look like."""
    folder, work = home / "files", home.parent
    if fault == "wrong-folder":
        return 3
    if fault == "unnamed-names":
        print(json.dumps({"warnings": []}))
        return 2
    for path in (work / "outside" / "escape", work / "beside", home / "in-home", folder / ".saltern" / "folder"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("content")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text("content")
    for name in ("link", "link-file", "dangling", "loop"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text("content")
    return 0


def main() -> int:
    place, client, *words = sys.argv[1:]
    fault = Path(place).read_text(encoding="utf-8")
    home = Path(os.environ["HOME"])
    if fault and words[0] == "login" and home.name == "phone":
        return fail(fault, words, home)
    if fault == "believes-listings" and words[0] == "sync":
        status = subprocess.call([client, *words])
        return 0 if status == 76 else status
    if fault == "sends-nothing" and words[0] == "sync" and home.name == "phone":
        return 0
    if fault and words[0] == "sync" and home.name == "laptop":
        return escape(fault, home)
    os.execv(client, [client, *words])


if __name__ == "__main__":
    sys.exit(main())
