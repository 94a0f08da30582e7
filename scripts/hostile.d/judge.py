"""Measures the neighbours before, during and after an attack, and judges.

Machines are shared and noisy, and the attackers run on the one that is attacked. So:
- attackers are niced and pause between requests; what is measured is what the server does to others, not who wins the
  processor;
- undisturbed is the median of the last five stretches without an attack, or the better one of those just before and
  just after it, when both are worse: then the machine was slow all the time;
- how late the measuring process itself was given a processor is allowed for;
- an attack that fails is carried out again, twice at most (--tries): what is wrong with a server is wrong each time;
- when somebody else took more of the machine while it went on than before and after it, its latency tells nothing, and
  that does not count as a try. What is never seen undisturbed is said to be not judged, and is no failure;
- when the measuring process was given no processor for more than a second, the machine stood still, and requests may have
  failed for it. That does not count as a try either, but fails in the end;
- memory is compared with that of a server in ordinary use, whatever number of times an attack was repeated.
"""

import asyncio
import os
import statistics
import time
from collections import Counter, deque
from dataclasses import dataclass

from neighbour import Neighbour
from samples import Window
from scene import Attack, Performance, Stage
from traffic import process
from traffic.ruler import DISTURBED

# Above twice the undisturbed latency.
ALLOWANCE = 0.020
MEMORY_LIMIT = 256 * 1024
MEMORY_BACK = 1.2
SETTLING = 10.0
# So much longer an attack may take until all its connections are there.
GATHERING = 60.0
# Processors that others may have taken beyond what they took before and after.
STRANGERS = 0.15
# How often an attack that others disturbed is carried out again.
DISTURBED_TRIES = 4


class NeverQuiet(Exception):
    """What an attack has broken stays broken."""


@dataclass
class Verdict:
    """One attack: what was measured, in seconds and kilobytes, and what is wrong with it."""

    attack: Attack
    #: Without an attack: p50 and p99, as a median over several stretches.
    undisturbed: tuple[float, float]
    during: Window
    after: Window
    limit: float
    resident: tuple[int, int, int]
    attackers: Counter[str]
    complaints: list[str]
    #: Processors that other programs used: without the attack, and during it.
    strangers: tuple[float, float]
    tries: int = 1

    @property
    def was_disturbed(self) -> bool:
        """Whether nothing is wrong but what somebody else on this machine may have done."""
        quiet, during = self.strangers
        return during > quiet + STRANGERS and self.complaints == [too_slow(self)]

    @property
    def was_late(self) -> bool:
        """Whether the machine stood still."""
        return max(self.during.longest_lateness, self.after.longest_lateness) > DISTURBED


class Judge:
    def __init__(
        self, stage: Stage, neighbour: Neighbour, server: int, seconds: float, quiet_seconds: float, tries: int
    ):
        self.stage = stage
        self.neighbour = neighbour
        self.server = server
        self.seconds = seconds
        self.quiet_seconds = quiet_seconds
        self.tries = tries
        self.quiet: deque[Window] = deque(maxlen=5)
        self.quiet_strangers: deque[float] = deque(maxlen=2)
        self.family = {os.getpid(), server, *stage.postmasters()}

    def quiet_window(self) -> Window:
        start, strangers = time.monotonic(), self.strangers_clock()
        self.watch(start + self.quiet_seconds)
        self.quiet_strangers.append(self.strangers_since(strangers))
        window = Window.of(self.neighbour.between(start, start + self.quiet_seconds))
        self.quiet.append(window)
        return window

    def strangers_clock(self) -> tuple[float, float]:
        """The time, and how much of the processors others have used so far."""
        return time.monotonic(), process.busy_seconds() - process.family_seconds(self.family)

    def strangers_since(self, clock: tuple[float, float]) -> float:
        """How many processors others have used since then."""
        now, used = self.strangers_clock()
        return max(0.0, (used - clock[1]) / (now - clock[0]))

    def watch(self, until: float) -> int:
        """Waits. The most resident memory meanwhile."""
        peak = self.resident()
        while (now := time.monotonic()) < until:
            time.sleep(min(0.1, until - now))
            self.neighbour.read()
            peak = max(peak, self.resident())
        return peak

    def resident(self) -> int:
        return process.resident_kilobytes(self.server)

    def judge(self, attack: Attack) -> Verdict:
        before = self.resident()
        verdict = self.carry_out(attack, before)
        disturbed = 0
        while verdict.complaints:
            if (verdict.was_disturbed or verdict.was_late) and disturbed < DISTURBED_TRIES:
                disturbed += 1
                verdict.tries -= 1
            if verdict.tries >= self.tries:
                break
            if attack.is_spent:
                asyncio.run(attack.prepare(self.stage))
            try:
                again = self.carry_out(attack, before)
            except NeverQuiet as failure:
                verdict.complaints.append(str(failure))
                return verdict
            again.tries = verdict.tries + 1
            verdict = again
        return verdict

    def carry_out(self, attack: Attack, before: int) -> Verdict:
        """Once. `before` is the resident memory before the first time."""
        self.wait_for_quiet()
        if attack.head_start is not None:
            self.open_connections_anew()
        performance = Performance(attack, self.stage, max(self.seconds, attack.least_seconds))
        if attack.head_start is not None:
            time.sleep(attack.head_start)
            self.neighbour.resume()
        start, strangers = time.monotonic(), self.strangers_clock()
        end = start + max(self.seconds, attack.least_seconds)
        peak = self.watch(end)
        while not performance.is_in_place and time.monotonic() < end + GATHERING:
            peak = max(peak, self.watch(time.monotonic() + 0.2))
        end = time.monotonic()
        during_strangers = self.strangers_since(strangers)
        attackers = performance.end()
        during = Window.of(self.neighbour.between(start, end))
        settled = time.monotonic() + SETTLING
        while self.resident() > before * MEMORY_BACK and time.monotonic() < settled:
            self.watch(time.monotonic() + 0.2)
        resident = (before, peak, self.resident())
        after = self.quiet_window()
        undisturbed = (
            statistics.median(window.p50 for window in self.quiet),
            statistics.median(window.p99 for window in self.quiet),
        )
        *_, just_before, _ = self.quiet if len(self.quiet) > 1 else (after, after)
        undisturbed = (undisturbed[0], max(undisturbed[1], min(just_before.p99, after.p99)))
        limit = 2 * undisturbed[1] + ALLOWANCE + during.lateness
        strangers_seen = (max(self.quiet_strangers), during_strangers)
        verdict = Verdict(attack, undisturbed, during, after, limit, resident, attackers, [], strangers_seen)
        verdict.complaints = complaints(verdict)
        return verdict

    def wait_for_quiet(self) -> None:
        """Until the neighbours are served. What the last attack did to them is in its verdict already."""
        for _ in range(10):
            if self.quiet and not self.quiet[-1].failures:
                return
            self.quiet_window()
        raise NeverQuiet(f"without an attack neighbours go on failing: {self.quiet[-1].failures}")

    def open_connections_anew(self) -> None:
        self.neighbour.rest_until_quiet()
        self.stage.superuser.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'saltern_app'")
        time.sleep(2)


def too_slow(verdict: Verdict) -> str:
    return f"p99 {verdict.during.p99 * 1000:.0f} ms is above {verdict.limit * 1000:.0f} ms"


def complaints(verdict: Verdict) -> list[str]:
    """Why an attack is not taken for harmless."""
    found = []
    before, peak, after = verdict.resident
    if not verdict.attack.took_place(verdict.attackers):
        found.append("the attack did not take place")
    if verdict.during.p99 > verdict.limit:
        found.append(too_slow(verdict))
    for name, failures in [("during", verdict.during.failures), ("after", verdict.after.failures)]:
        if failures:
            found.append(f"refused {name} it: " + ", ".join(f"{what} × {count}" for what, count in failures.items()))
    if peak > MEMORY_LIMIT:
        found.append(f"{peak / 1024:.0f} MB of memory")
    if after > before * MEMORY_BACK:
        found.append(f"{after / 1024:.0f} MB stay of {before / 1024:.0f} MB before")
    if objection := verdict.attack.objection(verdict.attackers):
        found.append(objection)
    return found
