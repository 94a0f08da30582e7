"""The same conversation without an event loop: one connection, one request at a time, one thread."""

import socket
import ssl

from traffic.wire import ConnectionEnded, Reply, Target


class BlockingConnection:
    """One connection that stays open until the server closes it, and is opened again when it is needed."""

    def __init__(self, target: Target, source: str | None = None, patience: float = 120.0):
        self.target = target
        self.source = source
        self.patience = patience
        self.tls: ssl.SSLSocket | None = None
        self.received = b""

    def exchange(self, data: bytes, has_body: bool = True) -> Reply:
        """Sends a request and reads its reply."""
        tls = self.tls or self.open()
        try:
            tls.sendall(data)
            reply = self.reply(has_body)
        except BaseException:
            self.close()
            raise
        if reply.closes:
            self.close()
        return reply

    def open(self) -> ssl.SSLSocket:
        plain = socket.create_connection(
            ("127.0.0.1", self.target.port), self.patience, (self.source, 0) if self.source else None
        )
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.tls = self.target.context().wrap_socket(plain, server_hostname="localhost")
        except BaseException:
            plain.close()
            raise
        self.received = b""
        return self.tls

    def close(self) -> None:
        if self.tls is not None:
            self.tls.close()
            self.tls = None

    def reply(self, has_body: bool = True) -> Reply:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        reply = Reply(int(lines[0].split(" ")[1]), fields)
        if has_body and reply.status not in (204, 304):
            if "content-length" in fields:
                reply.body = self.exactly(int(fields["content-length"]))
            elif fields.get("transfer-encoding") == "chunked":
                reply.body = self.chunks()
        return reply

    def chunks(self) -> bytes:
        body = b""
        while size := int(self.until(b"\r\n").split(b";")[0], 16):
            body += self.exactly(size)
            self.exactly(2)
        self.until(b"\r\n")
        return body

    def until(self, mark: bytes) -> bytes:
        """What comes before the mark; the mark is taken too."""
        while (end := self.received.find(mark)) < 0:
            self.receive()
        taken, self.received = self.received[:end], self.received[end + len(mark) :]
        return taken

    def exactly(self, count: int) -> bytes:
        while len(self.received) < count:
            self.receive()
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def receive(self) -> None:
        if self.tls is None:
            raise ConnectionEnded("before it was opened")
        more = self.tls.recv(262_144)
        if not more:
            raise ConnectionEnded("before a reply")
        self.received += more
