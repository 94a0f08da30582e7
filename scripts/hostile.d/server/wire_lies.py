"""Replies that are no good HTTP, or far too much of it."""

import gzip
import itertools

from traffic.relay import FLOOD, Exchange, Lie, Reply, Request, problem

MEGABYTE = 1 << 20
AWAY = frozenset([2, 69, 76])


class CutBody(Lie):
    name = "cut-body"
    says = "each body ends in its middle"
    hurry = 20

    async def answer(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        await exchange.write(b"HTTP/1.1 %d Cut\r\nContent-Length: %d\r\n\r\n" % (reply.status, len(reply.body)))
        await exchange.write(reply.body[: len(reply.body) // 2])
        exchange.end()


class EndlessBody(Lie):
    name = "endless-body"
    says = "a chunked body of JSON that does not end"
    hurry = 20
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Endless\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b'{"changes":[],"more":true,"cursor":"' + b"x" * (64 << 10)
        await exchange.flood(b"%x\r\n%s\r\n" % (len(piece), piece))
        exchange.end()


class EndlessError(EndlessBody):
    name = "endless-error"
    says = "an error of which the detail does not end"

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 500 Endless\r\nConnection: close\r\n\r\n")
        await exchange.flood(b'{"type":"about:blank","title":"' + b"x" * (64 << 10))
        exchange.end()


class LongLength(Lie):
    name = "long-length"
    says = "Content-Length of 10^18, and a short body"
    hurry = 20

    async def answer(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        await exchange.write(b"HTTP/1.1 %d Long\r\nContent-Length: 1000000000000000000\r\n\r\n" % reply.status)
        await exchange.write(reply.body)
        exchange.end()


class MalformedLength(Lie):
    name = "malformed-length"
    says = "Content-Length negative, beyond 64 bits, doubled, with Transfer-Encoding, or no number, in turn"
    hurry = 20

    LENGTHS = (
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999999",
        b"Content-Length: 5\r\nContent-Length: 7",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Content-Length: twelve",
        b"Transfer-Encoding: chunked, chunked",
        b"Content-Length:",
    )

    def __init__(self) -> None:
        self.turns = itertools.cycle(self.LENGTHS)

    async def answer(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        await exchange.write(b"HTTP/1.1 %d Odd\r\n%s\r\n\r\n" % (reply.status, next(self.turns)) + reply.body)
        exchange.end()


class MalformedChunks(Lie):
    name = "malformed-chunks"
    says = "chunks with sizes of 2^64, negative ones, or an extension that does not end"
    hurry = 20

    SIZES = (b"ffffffffffffffff1", b"-5", b"zz", b"7fffffffffffffff", b"5;" + b"x" * MEGABYTE)

    def __init__(self) -> None:
        self.turns = itertools.cycle(self.SIZES)

    async def answer(self, exchange: Exchange) -> None:
        reply = await exchange.forward()
        await exchange.write(b"HTTP/1.1 %d Odd\r\nTransfer-Encoding: chunked\r\n\r\n" % reply.status)
        await exchange.write(next(self.turns) + b"\r\n" + reply.body + b"\r\n0\r\n\r\n")
        exchange.end()


class Bomb(Lie):
    name = "gzip"
    says = "a body of 1 GiB that gzip makes 1 MB, as Content-Encoding and as Transfer-Encoding"
    hurry = 20

    def __init__(self) -> None:
        packed = gzip.compress(b" " * (16 * MEGABYTE), 9)
        self.body = packed * 64
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(self.body), self.body)
        self.turns = itertools.cycle(
            [
                b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(self.body) + self.body,
                b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk,
                b"Content-Encoding: gzip, gzip, gzip, deflate, br\r\nContent-Length: %d\r\n\r\n" % len(self.body)
                + self.body,
            ]
        )

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Bomb\r\n" + next(self.turns))
        exchange.end()


class ManyFields(Lie):
    name = "many-fields"
    says = "a million fields in the head"
    hurry = 20
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Many\r\n")
        await exchange.flood(b"".join(b"F%d: x\r\n" % number for number in range(10_000)), 16 * MEGABYTE)
        await exchange.write(b"Content-Length: 0\r\n\r\n")
        exchange.end()


class LongField(Lie):
    name = "long-field"
    says = "one field of 64 MB, then a status line of 64 MB"
    hurry = 20
    statuses = AWAY

    def __init__(self) -> None:
        self.turns = itertools.cycle([b"HTTP/1.1 200 Long\r\nDate: ", b"HTTP/1.1 200 "])

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(next(self.turns))
        await exchange.flood(b"x" * MEGABYTE, 64 * MEGABYTE)
        exchange.end()


class InterimReplies(Lie):
    name = "interim-replies"
    says = "1xx replies without end"
    hurry = 20
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        await exchange.flood(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1_000, 64 * MEGABYTE)
        exchange.end()


class ManyTrailers(Lie):
    name = "many-trailers"
    says = "trailers without end behind an empty body"
    hurry = 20
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Many\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        await exchange.flood(b"Trailer: x\r\n" * 10_000, 64 * MEGABYTE)
        exchange.end()


class NoHTTP(Lie):
    name = "no-http"
    says = "bytes that are not HTTP/1.1"
    hurry = 20
    statuses = AWAY

    ANSWERS = (
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

    def __init__(self) -> None:
        self.turns = itertools.cycle(self.ANSWERS)

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(next(self.turns))
        exchange.end()


class Silence(Lie):
    name = "silence"
    says = "takes the request and answers nothing"
    hurry = 200
    patience = 900
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        await exchange.drip(b"", 0.2, 500)
        exchange.end()


class SlowHead(Silence):
    name = "slow-head"
    says = "a head of which a byte comes now and then, for ever"
    patience = 1500

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Slow\r\nSlow: ")
        await exchange.drip(b"x" * 8, 0.01, 10_000)
        exchange.end()


class SlowBody(Silence):
    name = "slow-body"
    says = "a body of which some bytes come now and then, for ever"
    patience = 1500

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 Slow\r\nContent-Length: 900000\r\n\r\n")
        await exchange.drip(b" " * 8, 0.01, 10_000)
        exchange.end()


class SlowError(SlowBody):
    name = "slow-error"
    says = "an error of which some bytes come now and then, for ever, also where a stream was asked for"

    async def answer(self, exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 503 Slow\r\nContent-Length: 900000\r\n\r\n")
        await exchange.drip(b" " * 8, 0.01, 10_000)
        exchange.end()


class Hanging(Lie):
    name = "hanging-up"
    says = "carries out each request and ends the connection instead of an answer"
    hurry = 20
    statuses = AWAY

    async def answer(self, exchange: Exchange) -> None:
        if exchange.request.path != "/v1/changes/stream":
            await exchange.forward()
        exchange.end()


class OtherStatus(Lie):
    """One status for everything, which is not carried out."""

    hurry = 20
    status: int

    async def answer(self, exchange: Exchange) -> None:
        await exchange.send(Reply(self.status, {"content-type": "application/json"}, b"{}"))


class NoContent(OtherStatus):
    name, says, status = "no-content", "204 for everything", 204


class NotModified(OtherStatus):
    name, says, status = "not-modified", "304 for everything", 304


class Refusals(Lie):
    """A refusal with a code for everything."""

    hurry = 20
    refusal: Reply

    async def answer(self, exchange: Exchange) -> None:
        await exchange.send(self.refusal)


class Failing(Refusals):
    name, says = "failing", "500 for everything"
    statuses = AWAY
    refusal = problem(500, "internal")


class Unauthenticated(Refusals):
    name, says = "unauthenticated", "401 for everything"
    refusal = problem(401, "unauthenticated")


class Forbidding(Refusals):
    name, says = "forbidding", "403 for everything"
    refusal = problem(403, "forbidden")


class NothingThere(Refusals):
    name, says = "nothing-there", "404 for everything"
    refusal = problem(404, "not_found")


class Precondition(Refusals):
    name, says = "precondition", "412 for everything, with no item in it"
    refusal = problem(412, "precondition_failed")


class CursorExpired(Refusals):
    name, says = "cursor-expired", "410 for everything: the cursor has expired"
    refusal = problem(410, "cursor_expired")


class BatchTooLarge(Refusals):
    name, says = "too-large", "413 for everything"
    refusal = problem(413, "batch_too_large")


class OtherProblem(Refusals):
    name, says = "other-problem", "a problem of which the status is another than the reply's, and the code a page long"
    refusal = Reply(
        400, {"content-type": "application/problem+json"}, problem(299, "x" * 100_000, title="\x1b[2J" * 1_000).body
    )


class LongTitle(Refusals):
    name, says = "long-title", "a refusal with escape sequences for a terminal in its title and code"
    refusal = problem(400, "\x1b[2J\x07code", title="\x1b]0;owned\x07" * 10_000, detail="\u202e" * 1_000)


class EachFails(Lie):
    """The N-th request of each command fails, the others are answered."""

    name = "each-fails"
    says = "500, 401, 404, 409, 412 or nothing for one request, the first, the second, …"
    hurry = 20
    commands = tuple(word for _ in range(12) for word in ("sync", "folder"))

    def __init__(self) -> None:
        self.turn = 0
        self.ways = (
            problem(500, "internal"),
            problem(401, "unauthenticated"),
            problem(404, "not_found"),
            problem(409, "conflict"),
            problem(412, "precondition_failed"),
            None,
        )

    async def answer(self, exchange: Exchange) -> None:
        self.turn += 1
        step, kind = divmod(self.turn, 5)
        if kind == step % 5 and (way := self.ways[step % len(self.ways)]) is not None:
            return await exchange.send(way)
        if kind == step % 5:
            return exchange.end()
        await super().answer(exchange)


class RetryAfterYears(Refusals):
    name = "retry-after-years"
    says = "503 for everything, to be tried again in ten years"
    statuses = AWAY
    patience = 60
    refusal = problem(503, "unavailable", {"retry-after": str(10 * 365 * 86_400)})


class RetryAfterDay(Refusals):
    name = "retry-after-day"
    says = "429 for everything, to be tried again in a day"
    hurry = 20
    statuses = AWAY
    patience = 240
    refusal = problem(429, "rate_limited", {"retry-after": "86400"})


class Redirects(Lie):
    """Sends the client to a listener of our own, which hears nothing."""

    name = "redirects"
    says = "301, 302, 303, 307 and 308 to another server, in turn"
    hurry = 20

    def __init__(self, elsewhere: int) -> None:
        self.statuses_in_turn = itertools.cycle([301, 302, 303, 307, 308])
        self.location = f"https://localhost:{elsewhere}/v1/service"

    async def answer(self, exchange: Exchange) -> None:
        fields = {"location": self.location, "refresh": f"0; url={self.location}", "alt-svc": 'h2="localhost:1"'}
        await exchange.send(Reply(next(self.statuses_in_turn), fields, b"{}"))


def wire_lies(elsewhere: int) -> list[Lie]:
    plain = [
        CutBody, EndlessBody, EndlessError, LongLength, MalformedLength, MalformedChunks, Bomb, ManyFields, LongField,
        InterimReplies, ManyTrailers, NoHTTP, Silence, SlowHead, SlowBody, SlowError, Hanging, NoContent, NotModified,
        Failing, Unauthenticated, Forbidding, NothingThere, Precondition, CursorExpired, BatchTooLarge, OtherProblem,
        LongTitle, EachFails, RetryAfterYears, RetryAfterDay,
    ]  # fmt: skip
    return [*(kind() for kind in plain), Redirects(elsewhere)]


__all__ = ["FLOOD", "Request", "wire_lies"]
