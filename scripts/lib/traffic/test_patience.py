"""A disturbed request is repeated, and every other reply is final."""

import json
import unittest
from unittest import mock

from traffic import patience
from traffic.patience import Answer, Attempt, Losses, repeat
from traffic.ruler import Ruler
from traffic.wire import ConnectionEnded, Reply


def problem(status: int, code: str = "overloaded", **fields: str) -> Reply:
    return Reply(status, fields, json.dumps({"code": code}).encode())


BUSY = problem(503, **{"retry-after": "1"})


class Script:
    """Replies, and errors, in this order."""

    def __init__(self, *steps: Reply | Exception):
        self.steps = list(steps)

    def __call__(self, _: Attempt) -> Reply:
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


class Pauses(Ruler):
    """A machine that has always paused, or never."""

    def __init__(self, has_paused: bool):
        self.has_paused = has_paused

    def was_disturbed(self, begin: float) -> bool:
        return self.has_paused


@mock.patch.object(patience, "PAUSE", 0)
@mock.patch("sys.stderr", mock.Mock())
class Repeats(unittest.TestCase):
    def expect(
        self, status: int, repeats: int, *steps: Reply | Exception, creates: bool = False, losses: Losses = (),
        ruler: Ruler | None = None,
    ) -> None:
        script = Script(*steps)
        answer: Answer = repeat(script, "GET /", creates=creates, attempts=3, losses=losses, ruler=ruler)
        self.assertEqual((answer.status, answer.repeats, script.steps), (status, repeats, []))

    def test_a_disturbed_request_is_repeated(self) -> None:
        for code in patience.PASSING:
            self.expect(404, 1, problem(503, code, **{"retry-after": "1"}), problem(404))
        self.expect(200, 2, BUSY, BUSY, Reply(200))

    def test_the_last_attempt_is_final(self) -> None:
        self.expect(503, 2, BUSY, BUSY, BUSY)

    def test_other_failures_are_final(self) -> None:
        for reply in [
            problem(500, **{"retry-after": "1"}), problem(503), problem(503, "other", **{"retry-after": "1"}),
            Reply(503, {"retry-after": "1"}, b"<html>"), Reply(503, {"retry-after": "1"}, b"[]"), problem(429, **{"retry-after": "1"}),
        ]:
            self.expect(reply.status, 0, reply)

    def test_a_time_out_counts_after_the_shortest_limit(self) -> None:
        self.expect(408, 0, problem(408))
        with mock.patch.object(patience, "SHORTEST_LIMIT", 0):
            self.expect(200, 1, problem(408), Reply(200))

    def test_a_repeat_finds_its_own_effect_where_it_creates(self) -> None:
        self.expect(201, 1, BUSY, Reply(200), creates=True)
        self.expect(200, 1, BUSY, Reply(200))
        self.expect(200, 0, Reply(200), creates=True)
        self.expect(409, 1, BUSY, problem(409), creates=True)

    def test_a_loss_counts_after_the_shortest_limit(self) -> None:
        loss = ConnectionEnded("before a reply")
        for losses in [(), patience.LOSSES]:
            with self.assertRaises(ConnectionEnded):
                repeat(Script(loss), "GET /", losses=losses)
        with mock.patch.object(patience, "SHORTEST_LIMIT", 0):
            self.expect(200, 1, loss, Reply(200), losses=patience.LOSSES)
            with self.assertRaises(ConnectionEnded):
                repeat(Script(loss), "GET /")
            with self.assertRaises(ConnectionEnded):
                repeat(Script(loss, loss), "GET /", attempts=2, losses=patience.LOSSES)

    def test_a_ruler_excuses_only_what_the_machine_delayed(self) -> None:
        self.expect(503, 0, BUSY, ruler=Pauses(False))
        self.expect(200, 1, BUSY, Reply(200), ruler=Pauses(True))
        self.expect(500, 0, problem(500), ruler=Pauses(True))


if __name__ == "__main__":
    unittest.main()
