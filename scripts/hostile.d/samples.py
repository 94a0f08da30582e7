"""What the well-behaved client measured, and what it says about a stretch of time."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

RULER = "ruler"
NO_REPLY = 0


@dataclass(frozen=True)
class Sample:
    """One request. Times are seconds of the machine's monotonic clock."""

    due: float
    latency: float
    kind: str
    status: int
    expected: bool

    @classmethod
    def parse(cls, line: str) -> "Sample":
        due, latency, kind, status, expected = line.split()
        return cls(float(due), float(latency), kind, int(status), expected == "1")

    def line(self) -> str:
        return f"{self.due:.6f} {self.latency:.6f} {self.kind} {self.status} {int(self.expected)}\n"


def percentile(values: list[float], part: float) -> float:
    """The smallest value that so large a part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True)
class Window:
    """What came of the requests that were due in one stretch of time."""

    count: int
    p50: float
    p99: float
    worst: float
    #: How late the measuring process itself was given a processor.
    lateness: float
    #: The longest of that.
    longest_lateness: float
    #: What was not answered as it should have been, and how often.
    failures: dict[str, int]
    #: The slowest request of each kind.
    slowest: dict[str, float]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "Window":
        latencies: list[float] = []
        lateness: list[float] = []
        failures: dict[str, int] = {}
        slowest: dict[str, float] = {}
        for sample in samples:
            if sample.kind == RULER:
                lateness.append(sample.latency)
                continue
            latencies.append(sample.latency)
            slowest[sample.kind] = max(sample.latency, slowest.get(sample.kind, 0.0))
            if not sample.expected:
                name = f"{sample.kind} {sample.status or 'no reply'}"
                failures[name] = failures.get(name, 0) + 1
        return cls(
            len(latencies),
            percentile(latencies, 0.5),
            percentile(latencies, 0.99),
            max(latencies, default=0.0),
            percentile(lateness, 0.99),
            max(lateness, default=0.0),
            failures,
            slowest,
        )
