"""Guesses at passwords: many, and from many places."""

import asyncio
from collections import Counter

from scene import Attack, Scene, Stage
from traffic.people import Person, password_key, register_many
from traffic.wire import Connection, request

BLOCK = 51
TOKENS = 60
# Sixteen slots, the generation before, and the userid.
COUNTERS = 18
# Four failures cost nothing, then the delay begins to double.
LOOKS_AT_ONCE = 5


def guess(userid: str, device_token: str | None = None) -> bytes:
    body: dict[str, object] = {"userid": userid, "passwordKey": password_key()}
    if device_token is not None:
        body["device"] = {"token": device_token}
    return request("POST", "/v1/sessions", body)


class WrongLogIns(Attack):
    """Wrong keys for userids that exist and that do not."""

    name = "wrong-log-ins"
    says = "wrong log-ins, of twenty accounts and of nobody, over 64 connections"
    connections = 64

    async def prepare(self, stage: Stage) -> None:
        self.people = await register_many(stage.target, "guessed", 20, BLOCK)

    async def run(self, scene: Scene) -> None:
        async def guesser(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                attempt = 0
                while True:
                    attempt += 1
                    known = self.people[(number + attempt) % len(self.people)].userid
                    userid = known if attempt % 2 else f"nobody-{number}-{attempt}@example.org"
                    scene.saw(await connection.exchange(guess(userid)))
                    await asyncio.sleep(0.1)

        await scene.crowd(self.connections, guesser)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["401"] + counts["429"] >= 3 * self.connections


class DeviceGuesses(Attack):
    """Guesses at one account with many device tokens, each of which was given out for a right log-in."""

    name = "device-guesses"
    says = f"wrong log-ins of one account with {TOKENS} device tokens over 32 connections"
    connections = 32
    person: Person

    async def prepare(self, stage: Stage) -> None:
        self.person = (await register_many(stage.target, "devices", 1, BLOCK))[0]
        self.tokens: list[str] = []
        connection = await Connection.open(stage.target)
        for _ in range(TOKENS):
            made = await connection.exchange(self.person.log_in(device=False))
            self.tokens.append(made.json["deviceToken"])
        connection.close()

    async def run(self, scene: Scene) -> None:
        async def guesser(number: int) -> None:
            async with scene.connection(BLOCK, number) as connection:
                attempt = number
                while True:
                    attempt += 1
                    scene.saw(await connection.exchange(guess(self.person.userid, self.tokens[attempt % TOKENS])))
                    await asyncio.sleep(0.1)

        await scene.crowd(self.connections, guesser)

    def took_place(self, counts: Counter[str]) -> bool:
        return counts["401"] + counts["429"] >= 3 * self.connections

    def objection(self, counts: Counter[str]) -> str | None:
        # In the seconds that this takes, each counter allows a few more checks while its delay is short.
        allowed = COUNTERS * (LOOKS_AT_ONCE + 3)
        return f"{counts['401']} guesses were looked at" if counts["401"] > allowed else None
