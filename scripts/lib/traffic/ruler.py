"""How late the machine itself is: a ruler sleeps again and again, and notes by how much each sleep was too long.

A limit of time holds for a machine that works. Its lateness in the same moment is added to the limit, or the attempt is repeated.

    python3 ruler.py FILE    appends "MILLISECONDS LATENESS", a time of day and milliseconds, until it is ended; a line with
                             lateness 0 comes twice a second at least
"""

import sys
import threading
import time

STEP = 0.05
# Lateness in seconds that a machine which works has.
USUAL = 0.02
# An attempt during which the machine paused for more than so many seconds is not judged.
DISTURBED = 1.0


class Ruler:
    """A thread that measures as long as the process lives. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: Ends of the sleeps that were too long, and by how much.
        self.late: list[tuple[float, float]] = []
        self.slept = time.monotonic()
        threading.Thread(target=self.measure, daemon=True).start()

    def measure(self) -> None:
        while True:
            time.sleep(STEP)
            with self.lock:
                now = time.monotonic()
                lateness, self.slept = now - self.slept - STEP, now
                if lateness > USUAL:
                    self.late.append((now, lateness))

    def since(self, begin: float) -> float:
        """By how many seconds the machine was late since then."""
        return self.between(begin, time.monotonic())

    def between(self, begin: float, end: float) -> float:
        """By how many seconds the machine was late between the two, with the sleep that has not ended."""
        return sum(self.sleeps(begin, end))

    def sleeps(self, begin: float, end: float) -> list[float]:
        with self.lock:
            late = [*self.late, (time.monotonic(), max(0.0, time.monotonic() - self.slept - STEP))]
        # A sleep that was too long ends after the time by which it was late.
        return [each for ended, each in late if each > USUAL and ended > begin and ended - each < end]

    def was_disturbed(self, begin: float) -> bool:
        """Whether the machine paused for more than a second since then."""
        return max(self.sleeps(begin, time.monotonic()), default=0.0) > DISTURBED


def main() -> None:
    with open(sys.argv[1], "a", encoding="ascii", buffering=1) as file:
        slept = told = time.monotonic()
        file.write(f"{int(time.time() * 1000)} 0\n")
        while True:
            time.sleep(STEP)
            now = time.monotonic()
            lateness, slept = max(0.0, now - slept - STEP), now
            if lateness > USUAL or now - told > 0.5:
                told = now
                file.write(f"{int(time.time() * 1000)} {round(lateness * 1000) if lateness > USUAL else 0}\n")


if __name__ == "__main__":
    main()
