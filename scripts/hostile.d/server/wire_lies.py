"""Replies that are no good HTTP, or far too much of it."""

import gzip
import socket
import threading
from functools import cached_property

from kinds import Drip, Fixed, Flood, Mangled, Raw
from traffic.relay import STREAM, Exchange, Lie, Reply, Request, problem

MEGABYTE = 1 << 20
AWAY = frozenset([2, 69, 76])
PROBLEM = "application/problem+json"


class CutBody(Mangled):
    name, says = "cut-body", "each body ends in its middle"

    def mangled(self, reply: Reply) -> bytes:
        head = b"HTTP/1.1 %d Cut\r\nContent-Length: %d\r\n\r\n" % (reply.status, len(reply.body))
        return head + reply.body[: len(reply.body) // 2]


class EndlessBody(Flood):
    name, says, statuses = "endless-body", "a chunked body of JSON that does not end", AWAY

    PIECE = b'{"changes":[],"more":true,"cursor":"' + b"x" * (64 << 10)
    floods = ((b"HTTP/1.1 200 Endless\r\nTransfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n" % (len(PIECE), PIECE)),)


class EndlessError(Flood):
    name, says, statuses = "endless-error", "an error of which the detail does not end", AWAY

    BEGIN = b"HTTP/1.1 500 Endless\r\nConnection: close\r\n\r\n"
    floods = ((BEGIN, b'{"type":"about:blank","title":"' + b"x" * (64 << 10)),)


class LongLength(Mangled):
    name, says = "long-length", "Content-Length of 10^18, and a short body"

    def mangled(self, reply: Reply) -> bytes:
        return b"HTTP/1.1 %d Long\r\nContent-Length: 1000000000000000000\r\n\r\n" % reply.status + reply.body


class MalformedLength(Mangled):
    name = "malformed-length"
    says = "Content-Length negative, beyond 64 bits, doubled, with Transfer-Encoding, or no number, in turn"

    LENGTHS = (
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999999",
        b"Content-Length: 5\r\nContent-Length: 7",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Content-Length: twelve",
        b"Transfer-Encoding: chunked, chunked",
        b"Content-Length:",
    )

    def mangled(self, reply: Reply) -> bytes:
        return b"HTTP/1.1 %d Odd\r\n%s\r\n\r\n" % (reply.status, self.in_turn(self.LENGTHS)) + reply.body


class MalformedChunks(Mangled):
    name = "malformed-chunks"
    says = "chunks with sizes of 2^64, negative ones, or an extension that does not end"

    SIZES = (b"ffffffffffffffff1", b"-5", b"zz", b"7fffffffffffffff", b"5;" + b"x" * MEGABYTE)

    def mangled(self, reply: Reply) -> bytes:
        head = b"HTTP/1.1 %d Odd\r\nTransfer-Encoding: chunked\r\n\r\n" % reply.status
        return head + self.in_turn(self.SIZES) + b"\r\n" + reply.body + b"\r\n0\r\n\r\n"


class Bomb(Raw):
    name, says = "gzip", "a body of 1 GiB that gzip makes 1 MB, as Content-Encoding and as Transfer-Encoding"

    @cached_property
    def texts(self) -> tuple[bytes, ...]:  # type: ignore[override]
        body = gzip.compress(b" " * (16 * MEGABYTE), 9) * 64
        length = b"Content-Length: %d\r\n\r\n" % len(body) + body
        return (
            b"HTTP/1.1 200 Bomb\r\nContent-Encoding: gzip\r\n" + length,
            b"HTTP/1.1 200 Bomb\r\nTransfer-Encoding: gzip, chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
            b"HTTP/1.1 200 Bomb\r\nContent-Encoding: gzip, gzip, gzip, deflate, br\r\n" + length,
        )


class ManyFields(Flood):
    name, says, statuses = "many-fields", "fields without end in the head", AWAY
    floods = ((b"HTTP/1.1 200 Many\r\n", b"".join(b"F%d: x\r\n" % number for number in range(10_000))),)
    limit = 16 * MEGABYTE


class LongField(Flood):
    name, says, statuses = "long-field", "one field of 64 MB, then a status line of 64 MB", AWAY
    floods = ((b"HTTP/1.1 200 Long\r\nDate: ", b"x" * MEGABYTE), (b"HTTP/1.1 200 ", b"x" * MEGABYTE))
    limit = 64 * MEGABYTE


class InterimReplies(Flood):
    name, says, statuses = "interim-replies", "1xx replies without end", AWAY
    floods = ((b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1_000),)
    limit = 64 * MEGABYTE


class ManyTrailers(Flood):
    name, says, statuses = "many-trailers", "trailers without end behind an empty body", AWAY
    BEGIN = b"HTTP/1.1 200 Many\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    floods = ((BEGIN, b"Trailer: x\r\n" * 10_000),)
    limit = 64 * MEGABYTE


class NoHTTP(Raw):
    name, says, statuses = "no-http", "bytes that are not HTTP/1.1", AWAY

    texts = (
        b"<html>hello</html>\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 99999999999 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"\x00" * 4096,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nPRI * HTTP/2.0\r\n\r\n",
        b"\r\n" * 4096,
    )


class Silence(Drip):
    name, says, statuses = "silence", "takes the request and answers nothing", AWAY
    patience = 900
    seconds, count_of_pieces = 0.2, 500


class SlowHead(Drip):
    name, says, statuses = "slow-head", "a head of which a byte comes now and then, for ever", AWAY
    patience = 1500
    begin, piece = b"HTTP/1.1 200 Slow\r\nSlow: ", b"x" * 8


class SlowBody(Drip):
    name, says, statuses = "slow-body", "a body of which some bytes come now and then, for ever", AWAY
    patience = 1500
    begin, piece = b"HTTP/1.1 200 Slow\r\nContent-Length: 900000\r\n\r\n", b" " * 8


class SlowError(SlowBody):
    name = "slow-error"
    says = "an error of which some bytes come now and then, for ever, also where a stream was asked for"
    begin = b"HTTP/1.1 503 Slow\r\nContent-Length: 900000\r\n\r\n"


class Hanging(Lie):
    name, says = "hanging-up", "carries out each request and ends the connection instead of an answer"
    hurry = 8
    statuses = AWAY

    async def lie(self, exchange: Exchange) -> None:
        if exchange.request.path != STREAM:
            await exchange.forward()
        exchange.end()


class NoContent(Fixed):
    name, says, reply = "no-content", "204 for everything", Reply(204)


class NotModified(Fixed):
    name, says, reply = "not-modified", "304 for everything", Reply(304, {"content-type": "application/json"}, b"{}")


class Failing(Fixed):
    name, says, statuses, reply = "failing", "500 for everything", AWAY, problem(500, "internal")


class Unauthenticated(Fixed):
    name, says, reply = "unauthenticated", "401 for everything", problem(401, "unauthenticated")


class Forbidding(Fixed):
    name, says, reply = "forbidding", "403 for everything", problem(403, "forbidden")


class NothingThere(Fixed):
    name, says, reply = "nothing-there", "404 for everything", problem(404, "not_found")


class Precondition(Fixed):
    name, says, reply = "precondition", "412 for everything, with no item in it", problem(412, "precondition_failed")


class CursorExpired(Fixed):
    name, says, reply = "cursor-expired", "410 for everything: the cursor has expired", problem(410, "cursor_expired")


class BatchTooLarge(Fixed):
    name, says, reply = "too-large", "413 for everything", problem(413, "batch_too_large")


class OtherProblem(Fixed):
    name = "other-problem"
    says = "a problem of which the status is another than the reply's, and the code a page long"
    reply = Reply(400, {"content-type": PROBLEM}, problem(299, "x" * 100_000, title="\x1b[2J" * 1_000).body)


class LongTitle(Fixed):
    name, says = "long-title", "a refusal with escape sequences for a terminal in its title and code"
    reply = problem(400, "\x1b[2J\x07code", title="\x1b]0;owned\x07" * 10_000, detail="\u202e" * 1_000)


class EachFails(Lie):
    """The N-th request of each command fails, the others are answered."""

    name = "each-fails"
    says = "500, 401, 404, 409, 412 or nothing for one request, the first, the second, …"
    hurry = 8
    commands = tuple(word for _ in range(12) for word in ("sync", "folder"))

    WAYS = (
        problem(500, "internal"),
        problem(401, "unauthenticated"),
        problem(404, "not_found"),
        problem(409, "conflict"),
        problem(412, "precondition_failed"),
        None,
    )

    async def lie(self, exchange: Exchange) -> None:
        step, kind = divmod(self.count, 5)
        if kind != step % 5:
            return await exchange.pass_on()
        way = self.WAYS[step % len(self.WAYS)]
        if way is None:
            return exchange.end()
        await exchange.send(way)


class RetryAfterYears(Fixed):
    name, says, statuses = "retry-after-years", "503 for everything, to be tried again in ten years", AWAY
    hurry = 1
    reply = problem(503, "unavailable", {"retry-after": str(10 * 365 * 86_400)})


class RetryAfterDay(Fixed):
    name, says, statuses = "retry-after-day", "429 for everything, to be tried again in a day", AWAY
    patience = 240
    reply = problem(429, "rate_limited", {"retry-after": "86400"})


class Redirects(Lie):
    """Sends the client to a listener of its own, to which nothing must connect."""

    name, says = "redirects", "301, 302, 303, 307 and 308 to another server, in turn"
    hurry = 8

    def __init__(self) -> None:
        self.connections = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.location = f"https://localhost:{self.socket.getsockname()[1]}/v1/service"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            self.connections += 1
            connection.close()

    async def lie(self, exchange: Exchange) -> None:
        fields = {"location": self.location, "refresh": f"0; url={self.location}", "alt-svc": 'h2="localhost:1"'}
        await exchange.send(Reply(self.in_turn([301, 302, 303, 307, 308]), fields, b"{}"))

    def objection(self, requests: list[Request]) -> str | None:
        count = self.connections
        return f"it made {count} connections to another server" if count else super().objection(requests)


def wire_lies() -> list[Lie]:
    plain = [
        CutBody, EndlessBody, EndlessError, LongLength, MalformedLength, MalformedChunks, Bomb, ManyFields, LongField,
        InterimReplies, ManyTrailers, NoHTTP, Silence, SlowHead, SlowBody, SlowError, Hanging, NoContent, NotModified,
        Failing, Unauthenticated, Forbidding, NothingThere, Precondition, CursorExpired, BatchTooLarge, OtherProblem,
        LongTitle, EachFails, RetryAfterYears, RetryAfterDay, Redirects,
    ]  # fmt: skip
    return [kind() for kind in plain]
