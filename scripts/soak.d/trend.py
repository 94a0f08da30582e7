"""Whether a measured value grows."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Trend:
    """A straight line through measurements."""

    #: What it grows by between the first measurement and the last.
    growth: float
    #: How many times its own standard error the slope is.
    certainty: float

    @classmethod
    def of(cls, points: list[tuple[float, float]]) -> "Trend":
        count = len(points)
        mean_x = sum(x for x, _ in points) / count
        mean_y = sum(y for _, y in points) / count
        spread = sum((x - mean_x) ** 2 for x, _ in points)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
        residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
        error = math.sqrt(residual / max(1, count - 2) / spread)
        span = points[-1][0] - points[0][0]
        return cls(slope * span, math.inf if error == 0 and slope != 0 else slope / error if error else 0.0)

    def is_real(self, allowance: float) -> bool:
        """More than is allowed, and not by chance."""
        return self.growth > allowance and self.certainty > 4
