"""HTTP/1.1 over TLS, as little of it as a load generator needs: one connection, one request at a time."""

import asyncio
import json
import socket
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Fields = dict[str, str]


class ConnectionEnded(Exception):
    """The server closed the connection where a reply should have been."""


@dataclass(frozen=True)
class Target:
    """A server on this machine."""

    port: int
    certificate: str

    @classmethod
    def of(cls, url: str, certificate: str) -> "Target":
        """The one of a URL that ends with a port."""
        return cls(int(url.rpartition(":")[2]), certificate)

    @lru_cache(maxsize=1)
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.certificate)


@dataclass
class Reply:
    status: int
    fields: Fields = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        return self.fields.get("connection", "").lower() == "close"


def head(method: str, path: str, fields: Fields) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def request(method: str, path: str, body: Any = None, token: str | None = None, fields: Fields | None = None) -> bytes:
    """A whole request. A body that is not bytes is sent as JSON."""
    fields = dict(fields or {})
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    if body is None:
        return head(method, path, fields)
    content: bytes = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields.setdefault("Content-Type", "application/json")
    fields["Content-Length"] = str(len(content))
    return head(method, path, fields) + content


def loopback(block: int, number: int) -> str:
    """One of 64,000 addresses of this machine in 127.BLOCK/16."""
    return f"127.{block}.{number // 250}.{number % 250 + 1}"


async def connect(target: Target, source: str | None = None, receive_buffer: int | None = None) -> socket.socket:
    """A TCP connection from the given loopback address."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            made.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", target.port))
    except BaseException:
        made.close()
        raise
    return made


class Connection:
    """One connection that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader = reader
        self.writer = writer
        self.uses = 0

    @classmethod
    async def open(cls, target: Target, source: str | None = None, receive_buffer: int | None = None) -> "Connection":
        made = await connect(target, source, receive_buffer)
        reader, writer = await asyncio.open_connection(
            sock=made, ssl=target.context(), server_hostname="localhost", ssl_handshake_timeout=120
        )
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def exchange(self, data: bytes, has_body: bool = True) -> Reply:
        """Sends a request and reads its reply."""
        self.uses += 1
        self.writer.write(data)
        return await self.reply(has_body)

    async def reply(self, has_body: bool = True) -> Reply:
        try:
            return await self._reply(has_body)
        except asyncio.IncompleteReadError as error:
            raise ConnectionEnded("in a reply" if error.partial else "before a reply") from error

    async def _reply(self, has_body: bool) -> Reply:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        reply = Reply(int(lines[0].split(" ")[1]), fields)
        if has_body and reply.status not in (204, 304):
            if "content-length" in fields:
                reply.body = await self.reader.readexactly(int(fields["content-length"]))
            elif fields.get("transfer-encoding") == "chunked":
                reply.body = await self._chunks()
        return reply

    async def _chunks(self) -> bytes:
        body = b""
        while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readuntil(b"\r\n")
        return body

    def close(self) -> None:
        """At once, without saying good-bye."""
        self.writer.transport.abort()


class ReluctantConnection:
    """TLS by hand, so that nothing is taken from the socket but what the caller asks for. Replies are not decrypted."""

    def __init__(self, made: socket.socket, context: ssl.SSLContext):
        self.socket = made
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    @classmethod
    async def open(cls, target: Target, source: str, receive_buffer: int = 4096) -> "ReluctantConnection":
        connection = cls(await connect(target, source, receive_buffer), target.context())
        try:
            async with asyncio.timeout(120):
                await connection._shake_hands()
        except BaseException:
            connection.close()
            raise
        return connection

    async def _shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                return await self._flush()
            except ssl.SSLWantReadError:
                await self._flush()
                self.incoming.write(await self._receive(4096))

    async def send(self, data: bytes) -> None:
        self.tls.write(data)
        await self._flush()

    async def take(self, count: int) -> int:
        """Takes at most so many bytes, and throws them away."""
        return len(await self._receive(count))

    def close(self) -> None:
        self.socket.close()

    async def _flush(self) -> None:
        if data := self.outgoing.read():
            await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def _receive(self, count: int) -> bytes:
        if data := await asyncio.get_running_loop().sock_recv(self.socket, count):
            return data
        raise ConnectionEnded("without a word")
