"""Clients with one fault each, which have to be found out: without this a check might never fail."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from history_lies import HiddenEdits
from journey import Journey
from titles import judge_titles
from trust_lies import stretching
from wire_lies import Redirects

from traffic.relay import Lie

#: The faults of gullible.py that show at a log-in or a sync, and what has to be complained of.
FAULTS = {
    "hangs": "did not end",
    "crashes": "was ended by signal 11",
    "odd-status": "ended with 3",
    "says-nothing": "no error object",
    "escapes": "wrote escape sequences",
    "hoards": "had 3",
    "believes": "it sent POST /v1/sessions",
    "follows": "connections to another server",
    "asks-nothing": "the client did not ask",
    "sends-password": "a secret is in",
    "sends-key": "the password key is in",
    "writes-outside": "something outside of the folder",
    "forgets-items": "lost here",
    "spoils-store": "afterwards",
    "spoils-file": "lost here: the file long",
    "sends-nothing": "another device lacks",
    "removes-file": ".txt is gone",
    "believes-listings": "the lie was not noticed",
}
#: The same of folders with other devices' names.
TITLE_FAULTS = {
    "wrong-folder": ["status 3", "usable names did not arrive"],
    "unnamed-names": ["no warning names"],
    "takes-all": [
        "something outside of the folder", "was made beside the folder", "was made in the home", "the link dangling",
        "a hidden executable file", "the folder's marker",
    ],
}  # fmt: skip


@dataclass
class Flaw:
    """One faulty client, whose verdict is judged itself."""

    fault: str

    @property
    def name(self) -> str:
        return f"flaw {self.fault}"

    def complaints(self, journey: Journey) -> list[str]:
        """What is wrong with the verdict on it."""
        place = journey.work / "fault"
        place.write_text("")
        client, journey.client = journey.client, str(_program(journey, place))
        slack = journey.slack
        try:
            if self.fault in TITLE_FAULTS:
                found, wanted = judge_titles(journey, lambda: place.write_text(self.fault)), TITLE_FAULTS[self.fault]
            else:
                journey.begin()
                place.write_text(self.fault)
                journey.slack = 3 if self.fault == "hangs" else slack
                found, wanted = journey.judge(self._lie()).complaints, [FAULTS[self.fault]]
                place.write_text("")
                if self.fault == "sends-nothing":
                    found += journey.arrivals()
        finally:
            journey.client, journey.slack = client, slack
            journey.end()
        return [f"not found out: {words}" for words in wanted if not any(words in complaint for complaint in found)]

    def _lie(self) -> Lie:
        if self.fault == "believes-listings":
            return HiddenEdits()
        if self.fault == "follows":
            lie: Lie = Redirects()
        elif self.fault == "believes":
            lie = stretching("flaw", "one iteration", iterations=1)
        else:
            lie = stretching("flaw", "the truth")
            lie.statuses = frozenset()  # type: ignore[misc]
        lie.commands = ("again",)  # type: ignore[misc]
        lie.hurry, lie.patience = 1, 1  # type: ignore[misc]
        return lie


def _program(journey: Journey, place: Path) -> Path:
    program = journey.work / "gullible"
    words = ["/usr/bin/python3", str(Path(__file__).with_name("gullible.py")), str(place), journey.client]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o700)
    return program


def flaws() -> list[Flaw]:
    return [Flaw(fault) for fault in (*FAULTS, *TITLE_FAULTS)]
