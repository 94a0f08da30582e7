"""A server with the pinned key between a client and the true server: it forwards requests, and a lie answers them."""

import asyncio
import json
import ssl
import threading
from abc import ABC
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, TypeVar

from .wire import Connection, ConnectionEnded, Reply, Target, head

#: Bytes that a lie sends in one answer at most.
FLOOD = 256 << 20
#: The path of the stream of changes, which ends with its connection.
STREAM = "/v1/changes/stream"
#: Fields that belong to one connection.
OWN_FIELDS = ("host", "connection", "transfer-encoding", "content-length", "expect")
TROUBLE = (OSError, ssl.SSLError, ConnectionEnded, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Request:
    """What the client has sent."""

    method: str
    target: str
    fields: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def call(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def bytes(self, body: bytes | None = None) -> bytes:
        content = self.body if body is None else body
        fields = {name: value for name, value in self.fields.items() if name not in OWN_FIELDS}
        if content or self.method in ("PUT", "POST"):
            fields["content-length"] = str(len(content))
        return head(self.method, self.target, fields) + content


def problem(status: int, code: str, fields: dict[str, str] | None = None, **members: Any) -> Reply:
    """A refusal as the true server writes it."""
    body = {"type": "about:blank", "title": "No", "status": status, "code": code, **members}
    return Reply(status, {"content-type": "application/problem+json", **(fields or {})}, json.dumps(body).encode())


def with_json(reply: Reply, value: Any) -> Reply:
    return Reply(reply.status, reply.fields, json.dumps(value).encode())


@dataclass
class Exchange:
    """One request, and the connection on which it is answered."""

    request: Request
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    origin: Target
    has_ended: bool = False

    async def forward(self, body: bytes | None = None) -> Reply:
        """What the true server answers."""
        async with asyncio.timeout(60):
            connection = await Connection.open(self.origin)
            try:
                return await connection.exchange(self.request.bytes(body), self.request.method != "HEAD")
            finally:
                connection.close()

    async def send(self, reply: Reply) -> None:
        fields = {name: value for name, value in reply.fields.items() if name not in OWN_FIELDS}
        if reply.status not in (204, 304):
            length = reply.fields.get("content-length", "0") if self.request.method == "HEAD" else str(len(reply.body))
            fields["content-length"] = length
        lines = [f"HTTP/1.1 {reply.status} Reply", *(f"{name}: {value}" for name, value in fields.items())]
        body = b"" if self.request.method == "HEAD" else reply.body
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("utf-8") + body)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        # Otherwise the loop would not notice a closed connection, as long as there is room.
        await asyncio.sleep(0)
        if self.reader.at_eof() or self.reader.exception() or self.writer.transport.is_closing():
            raise ConnectionResetError("the client has ended the connection")

    async def flood(self, piece: bytes, limit: int = FLOOD) -> None:
        """The same bytes again and again, until the client ends the connection."""
        for _ in range(limit // len(piece)):
            await self.write(piece)

    async def drip(self, piece: bytes, seconds: float, count: int) -> None:
        """A few bytes at a time."""
        for _ in range(count):
            await self.write(piece)
            await asyncio.sleep(seconds)

    async def pass_on(self) -> None:
        """Answers what the true server answers."""
        if self.request.path == STREAM:
            return await self._pipe()
        await self.send(await self.forward())

    async def _pipe(self) -> None:
        connection = await Connection.open(self.origin)
        try:
            await connection.send(self.request.bytes())
            while data := await connection.reader.read(16384):
                await self.write(data)
        finally:
            connection.close()
            self.end()

    def end(self) -> None:
        """The connection ends after this answer."""
        self.has_ended = True


class Lie(ABC):
    """A way of answering that is not the true server's."""

    name: ClassVar[str]
    says: ClassVar[str]
    #: The calls that it is about, as patterns of "METHOD /path". The others are answered truly.
    calls: ClassVar[tuple[str, ...]] = ("*",)
    #: The commands that are run while it lasts; see `Journey`.
    commands: ClassVar[tuple[str, ...]] = ("sync", "folder")
    #: The exit statuses that are right; none for every documented one.
    statuses: ClassVar[frozenset[int]] = frozenset()
    #: How many times as fast the client's clocks are, where it has to wait.
    hurry: ClassVar[int] = 1
    #: How long a command may take, in seconds of the client's clocks.
    patience: ClassVar[float] = 60
    #: Calls that must not be made at all.
    forbidden: ClassVar[frozenset[str]] = frozenset()
    #: It leaves an account that the other tests cannot use.
    is_spending: ClassVar[bool] = False
    #: True if a command must end with 76 after the false reply.
    is_to_be_noticed: ClassVar[bool] = False
    #: How many requests it has been the answer to.
    count = 0
    #: How many replies had something untrue, where it is to be noticed.
    told = 0

    async def answer(self, exchange: Exchange) -> None:
        if not any(fnmatchcase(exchange.request.call, pattern) for pattern in self.calls):
            return await exchange.pass_on()
        self.count += 1
        await self.lie(exchange)

    async def lie(self, exchange: Exchange) -> None:
        """Answers a call that it is about."""
        await exchange.pass_on()

    def in_turn(self, choices: Sequence[Choice]) -> Choice:
        """The first choice for the first request, and so on, over and over."""
        return choices[(self.count - 1) % len(choices)]

    def objection(self, requests: list[Request]) -> str | None:
        """What the client has sent and should not have."""
        calls = {request.call for request in requests} & self.forbidden
        return f"it sent {', '.join(sorted(calls))}" if calls else None


class Honesty(Lie):
    name = "honesty"
    says = "answers what the true server answers"
    calls = ()


@dataclass
class Relay:
    """Answers on a thread of its own."""

    origin: Target
    certificate: str
    key: str
    lie: Lie = field(default_factory=Honesty)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def start(self) -> None:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, args=(ready,), daemon=True).start()
        if not ready.wait(30):
            raise RuntimeError("the relay did not start")

    def take_requests(self) -> list[Request]:
        taken, self.requests = self.requests, []
        return taken

    def run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Runs something on the relay's thread."""
        return asyncio.run_coroutine_threadsafe(body, self._loop).result(60)

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._carry, "127.0.0.1", self.port, ssl=context, limit=1 << 20)
        )
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await self._request(reader, writer):
                self.requests.append(request)
                exchange = Exchange(request, reader, writer, self.origin)
                await self.lie.answer(exchange)
                if exchange.has_ended:
                    break
        except (*TROUBLE, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        method, target, _ = lines[0].split(" ", 2)
        fields = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        if fields.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        return Request(method, target, fields, body)
