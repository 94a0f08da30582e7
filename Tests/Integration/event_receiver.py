"""Receivers of outgoing events: one that works and others that fail in the ways receivers do.

Each path is a receiver. A line of JSON in the record says what it got. The signature is checked by PyPI's standardwebhooks.
"""

import argparse
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

LOCK = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    record: Path
    secrets: Path
    port: int

    def verify(self, name: str, body: bytes) -> bool:
        """Whether one of the secrets that the receiver has signs the body."""
        file = self.secrets / name
        for secret in file.read_text(encoding="ascii").split() if file.exists() else []:
            try:
                Webhook(secret).verify(body, dict(self.headers))
                return True
            except WebhookVerificationError:
                continue
        return False

    def do_POST(self) -> None:
        name = self.path.strip("/")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = json.loads(body)
        line = {
            "receiver": name,
            "verified": self.verify(name, body),
            "id": self.headers["webhook-id"],
            "signatures": len(self.headers["webhook-signature"].split(" ")),
            "time": time.time(),
            **event,
        }
        # A file beside the secrets says how the receiver behaves.
        behaviour = self.secrets / f"{name}.behaviour"
        answer = behaviour.read_text(encoding="ascii").strip() if behaviour.exists() else "ok"
        with LOCK, self.record.open("a", encoding="ascii") as record:
            record.write(json.dumps({**line, "answer": answer}) + "\n")
        self.answer(answer)

    def answer(self, answer: str) -> None:
        match answer:
            case "ok":
                self.reply(204)
            case "slow":
                time.sleep(1.5)
                self.reply(204)
            case "gone":
                self.reply(410)
            case "error":
                self.reply(500)
            case "redirect":
                self.reply(307, location=f"https://localhost:{self.port}/elsewhere")
            case "close":
                self.close_connection = True
            case "hang":
                time.sleep(60)
            case "dribble":
                self.dribble()
            case "flood":
                self.flood()

    def reply(self, status: int, location: str | None = None) -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def dribble(self) -> None:
        """A success whose body never comes to its end."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(60):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(1)

    def flood(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000000")
        self.end_headers()
        for _ in range(1_000):
            self.wfile.write(b"x" * 100_000)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the record says it."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: the server has closed the connection."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--secrets", type=Path, required=True)
    options = parser.parse_args()
    Receiver.port = options.port
    Receiver.record = options.record
    Receiver.secrets = options.secrets
    server = Server(("127.0.0.1", options.port), Receiver)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", flush=True)
    server.serve_forever()


main()
