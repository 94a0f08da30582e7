"""Requests that are cut into as many pieces as a few bytes can be."""

from collections import Counter

from attacks.memory import MEBIBYTE
from scene import Attack, Scene, Stage
from traffic.people import Person, register_many
from traffic.wire import head, request

BLOCK = 101
ACCOUNTS = 30
EACH = 20


class _Tiny(Attack):
    """One request again and again, over many connections of many accounts."""

    is_quick = False
    connections = ACCOUNTS * EACH
    #: What is handed to TLS at once: it becomes one record, or a few.
    piece = MEBIBYTE

    async def prepare(self, stage: Stage) -> None:
        self.people = await register_many(stage.target, self.name, ACCOUNTS, BLOCK)

    def message(self, person: Person) -> bytes:
        raise NotImplementedError

    async def run(self, scene: Scene) -> None:
        messages = [self.message(person) for person in self.people]

        async def sender(number: int) -> None:
            message = messages[number % ACCOUNTS]
            async with scene.connection(BLOCK, number) as connection:
                while not scene.over:
                    for start in range(0, len(message), self.piece):
                        await connection.send(message[start : start + self.piece])
                    scene.saw(await connection.reply())

        await scene.crowd(self.connections, sender)

    def took_place(self, counts: Counter[str]) -> bool:
        return super().took_place(counts) and sum(counts.values()) > 2 * self.connections


def chunked(person: Person, chunks: bytes, trailers: bytes = b"") -> bytes:
    """A batch without operations, and with so much white space that it takes a while to come."""
    fields = {
        "Authorization": f"Bearer {person.token}",
        "Content-Type": "application/json",
        "Transfer-Encoding": "chunked",
    }
    return head("POST", "/v1/items/batch", fields) + chunks + b"0\r\n" + trailers + b"\r\n"


class TinyChunks(_Tiny):
    name = "tiny-chunks"
    says = f"bodies of 15 KiB in chunks of one byte, from {ACCOUNTS} accounts over {ACCOUNTS * EACH} connections"

    def message(self, person: Person) -> bytes:
        return chunked(person, b"1\r\n \r\n" * 15_360)


class WholeChunks(_Tiny):
    name = "whole-chunks"
    says = f"bodies of 15 KiB in chunks of 5 KiB, from {ACCOUNTS} accounts over {ACCOUNTS * EACH} connections"

    def message(self, person: Person) -> bytes:
        return chunked(person, (b"1400\r\n" + b" " * 5_120 + b"\r\n") * 3)


class TinyFields(_Tiny):
    name = "tiny-fields"
    says = f"requests with 99 fields of one letter over {ACCOUNTS * EACH} connections"

    def message(self, person: Person) -> bytes:
        return request("GET", "/v1/service", fields={chr(97 + number % 26): "" for number in range(26)})[:-2] + (
            b"a:\r\n" * 72 + b"\r\n"
        )


class TinyTrailers(_Tiny):
    name = "tiny-trailers"
    says = f"empty bodies with 100 trailer fields of one letter over {ACCOUNTS * EACH} connections"

    def message(self, person: Person) -> bytes:
        return chunked(person, b"", b"a:\r\n" * 100)


class TinyRecords(_Tiny):
    name = "tiny-records"
    says = f"bodies of 2 kB in TLS records of one byte over {ACCOUNTS * EACH} connections"
    piece = 1

    def message(self, person: Person) -> bytes:
        return request("POST", "/v1/items/batch", b" " * 2_000, person.token)
