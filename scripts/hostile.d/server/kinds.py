"""The shapes that several lies share."""

import json
from typing import Any, ClassVar

from traffic.relay import FLOOD, STREAM, Exchange, Lie, Reply, Request, with_json


class Restated(Lie):
    """Changes the JSON of replies."""

    #: Whether replies of errors are changed, too.
    is_about_errors: ClassVar[bool] = False

    async def lie(self, exchange: Exchange) -> None:
        if exchange.request.path == STREAM:
            return await exchange.pass_on()
        reply = await exchange.forward()
        is_json = reply.body and "json" in reply.fields.get("content-type", "")
        if is_json and (reply.status < 300 or self.is_about_errors):
            reply = with_json(reply, self.restated(exchange.request, json.loads(reply.body)))
        await exchange.send(reply)

    def restated(self, request: Request, value: Any) -> Any:
        raise NotImplementedError


class Fixed(Lie):
    """One reply, and the request is not carried out."""

    hurry = 8
    reply: ClassVar[Reply]

    async def lie(self, exchange: Exchange) -> None:
        await exchange.send(self.reply)


class Mangled(Lie):
    """Writes the true reply in other bytes, and ends the connection."""

    hurry = 8

    async def lie(self, exchange: Exchange) -> None:
        await exchange.write(self.mangled(await exchange.forward()))
        exchange.end()

    def mangled(self, reply: Reply) -> bytes:
        raise NotImplementedError


class Raw(Lie):
    """Bytes of its own, in turn; the request is not carried out."""

    hurry = 8
    texts: tuple[bytes, ...]

    async def lie(self, exchange: Exchange) -> None:
        await exchange.write(self.in_turn(self.texts))
        exchange.end()


class Flood(Lie):
    """A beginning, and then the same bytes again and again until the client ends the connection; several take turns."""

    hurry = 8
    #: Beginnings, and what is repeated.
    floods: ClassVar[tuple[tuple[bytes, bytes], ...]]
    limit: ClassVar[int] = FLOOD

    async def lie(self, exchange: Exchange) -> None:
        begin, piece = self.in_turn(self.floods)
        await exchange.write(begin)
        await exchange.flood(piece, self.limit)
        exchange.end()


class Drip(Lie):
    """A beginning, and then some bytes now and then."""

    hurry = 200
    begin: ClassVar[bytes] = b""
    piece: ClassVar[bytes] = b""
    seconds: ClassVar[float] = 0.01
    count_of_pieces: ClassVar[int] = 10_000

    async def lie(self, exchange: Exchange) -> None:
        await exchange.write(self.begin)
        await exchange.drip(self.piece, self.seconds, self.count_of_pieces)
        exchange.end()
